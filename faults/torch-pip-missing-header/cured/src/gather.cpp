#include <Python.h>
#include <vector>

static PyObject *gather(PyObject *, PyObject *) {
    std::vector<int> ranks{0, 1, 2};
    long total = 3;
    return PyLong_FromLong(total);
}

static PyMethodDef methods[] = {{"gather", gather, METH_NOARGS, "gather"}, {nullptr, nullptr, 0, nullptr}};
static struct PyModuleDef module = {PyModuleDef_HEAD_INIT, "fastgather", nullptr, -1, methods};

PyMODINIT_FUNC PyInit_fastgather(void) { return PyModule_Create(&module); }
