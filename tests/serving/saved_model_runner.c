/* Runs a SavedModel's text signature through TensorFlow's C API: the loader that TensorFlow Serving
 * uses, and no Python.
 *
 *   saved_model_runner SAVED_MODEL TOKENIZER_LIBRARIES INPUT OUTPUTS SCORES TRUNCATED
 *
 * Libraries have commas between. The four names are the signature's tensors, "operation:index".
 * Standard input: requests, each the number of texts, then for each its length and its bytes.
 * Standard output: for each text the length and the bytes of its output, its score and one byte of 0
 * or 1. Numbers are 32 bits, of this machine's byte order.
 */
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "tensorflow/c/c_api.h"
#include "tensorflow/c/tf_tensor.h"
#include "tensorflow/c/tf_tstring.h"

static void check(TF_Status* status, const char* what) {
  if (TF_GetCode(status) != TF_OK) {
    fprintf(stderr, "%s: %s\n", what, TF_Message(status));
    exit(1);
  }
}

static uint32_t read_number(void) {
  uint32_t number;
  if (fread(&number, sizeof number, 1, stdin) != 1) {
    fprintf(stderr, "the input ends too soon\n");
    exit(1);
  }
  return number;
}

static TF_Output find(TF_Graph* graph, const char* tensor_name) {
  char name[1024];
  snprintf(name, sizeof name, "%s", tensor_name);
  char* colon = strrchr(name, ':');
  TF_Output output = {NULL, 0};
  if (colon != NULL) {
    *colon = '\0';
    output.index = atoi(colon + 1);
    output.oper = TF_GraphOperationByName(graph, name);
  }
  if (output.oper == NULL) {
    fprintf(stderr, "no tensor %s\n", tensor_name);
    exit(1);
  }
  return output;
}

static TF_Tensor* read_texts(int64_t count) {
  TF_Tensor* texts = TF_AllocateTensor(TF_STRING, &count, 1, count * sizeof(TF_TString));
  TF_TString* strings = TF_TensorData(texts);
  for (int64_t i = 0; i < count; i++) {
    uint32_t length = read_number();
    char* bytes = malloc(length + 1);
    if (fread(bytes, 1, length, stdin) != length) {
      fprintf(stderr, "the input ends too soon\n");
      exit(1);
    }
    TF_StringInit(&strings[i]);
    TF_StringCopy(&strings[i], bytes, length);
    free(bytes);
  }
  return texts;
}

static void write_results(int64_t count, TF_Tensor** results) {
  const TF_TString* strings = TF_TensorData(results[0]);
  const float* scores = TF_TensorData(results[1]);
  const unsigned char* truncated = TF_TensorData(results[2]);
  for (int64_t i = 0; i < count; i++) {
    uint32_t length = (uint32_t)TF_StringGetSize(&strings[i]);
    fwrite(&length, sizeof length, 1, stdout);
    fwrite(TF_StringGetDataPointer(&strings[i]), 1, length, stdout);
    fwrite(&scores[i], sizeof scores[i], 1, stdout);
    fwrite(&truncated[i], 1, 1, stdout);
  }
  fflush(stdout);
}

int main(int argc, char** argv) {
  if (argc != 7) {
    fprintf(stderr, "expected 6 arguments, got %d\n", argc - 1);
    return 2;
  }
  TF_Status* status = TF_NewStatus();
  for (char* path = strtok(argv[2], ","); path != NULL; path = strtok(NULL, ",")) {
    TF_LoadLibrary(path, status);
    check(status, "TF_LoadLibrary");
  }

  TF_Graph* graph = TF_NewGraph();
  TF_SessionOptions* options = TF_NewSessionOptions();
  const char* tags[] = {"serve"};
  TF_Session* session =
      TF_LoadSessionFromSavedModel(options, NULL, argv[1], tags, 1, graph, NULL, status);
  check(status, "TF_LoadSessionFromSavedModel");

  TF_Output input = find(graph, argv[3]);
  TF_Output outputs[3];
  for (int i = 0; i < 3; i++) outputs[i] = find(graph, argv[4 + i]);
  uint32_t count;
  while (fread(&count, sizeof count, 1, stdin) == 1) {
    TF_Tensor* texts = read_texts(count);
    TF_Tensor* results[3];
    TF_SessionRun(session, NULL, &input, &texts, 1, outputs, results, 3, NULL, 0, NULL, status);
    check(status, "TF_SessionRun");
    write_results(count, results);
    TF_DeleteTensor(texts);
    for (int i = 0; i < 3; i++) TF_DeleteTensor(results[i]);
  }
  return 0;
}
