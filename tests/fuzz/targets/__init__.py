"""One module a target: ``target(data)`` raises where a promise is broken, ``seeds()`` are inputs to begin with."""
