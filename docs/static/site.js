// Long names in tables break behind _, / and = rather than anywhere.
document.querySelectorAll("td code .pre").forEach((node) => {
  node.innerHTML = node.innerHTML.replace(/[_/=]/g, "$&<wbr>");
});
