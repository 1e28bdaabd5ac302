"""Lints, one file each: `examine(witnesses, options)` yields readings. Found by scanning.

What is here looks at variables. A lint of the training script has its place here too: `CheckOptions.code` names the
scripts, and a module that reads them yields readings in the same way.
"""
