# cmake -DIN=p2p.ptx -DOUT=ptx.cc -P embed.cmake: the PTX text as a C++ string.
file(READ ${IN} text)
file(WRITE ${OUT}.new
"// Generated from ${NAME}; do not edit.
#include \"lib/gpu/ptx.h\"
namespace p2p {
const char kPtx[] = R\"ptx(${text})ptx\";
}  // namespace p2p
")
configure_file(${OUT}.new ${OUT} COPYONLY)
