"""The tables and figures of Filippone & Girolami (2014), one module for each.

    python -m examples.paper list
    python -m examples.paper run all --scale quick

`docs/paper.md` is made of what is stored in `docs/paper/`.
"""
