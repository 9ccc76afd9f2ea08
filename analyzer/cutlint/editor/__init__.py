"""What an editor shows while someone works on generated files and launchers: ``cutlint lsp``.

`session` analyses text that may not be saved yet, with the stages of a normal run; `diagnostics`, `lens` and `hover` say
what comes of it in the protocol's terms; `server` talks to the editor. Only `server` knows pygls.
"""
