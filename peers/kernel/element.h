// Bitcoin Core with another limit of stack elements: the compiler is made to read this file before each source file
// (`-include`, README.md), so that whatever follows the header with the constant sees another value of it. The constant
// (src/script/script.h) is no macro, so `-DMAX_SCRIPT_ELEMENT_SIZE=…` could not set it.
#if defined(__cplusplus) && __has_include(<script/script.h>)
#include <script/script.h>
#define MAX_SCRIPT_ELEMENT_SIZE (static_cast<unsigned int>(ASSAY_ELEMENT_BYTES))
#endif
