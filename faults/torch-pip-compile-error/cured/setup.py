from setuptools import Extension, setup

setup(
    name="fastgather",
    version="0.3.1",
    py_modules=[],
    ext_modules=[Extension("fastgather", ["src/gather.cpp"])],
)
