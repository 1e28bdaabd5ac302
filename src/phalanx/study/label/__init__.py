"""Labelling by two raters, independently, on a local web page; adjudication; agreement as in the study."""
