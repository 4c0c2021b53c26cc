/* Python finds the file by importing it; the functions of decoder.c are called through ctypes. */
#define PY_SSIZE_T_CLEAN
#define Py_LIMITED_API 0x030B0000 /* one build serves Python 3.11 and all later versions */
#include <Python.h>

static struct PyModuleDef definition = {PyModuleDef_HEAD_INIT, "_decoder", 0, -1, 0, 0, 0, 0, 0};
PyMODINIT_FUNC PyInit__decoder(void) { return PyModule_Create(&definition); }
