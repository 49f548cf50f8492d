"""The embedded toy problem: a synchronous grammar of English, German and French, and its words."""
