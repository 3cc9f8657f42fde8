# p2p_program(NAME NAMESPACE ns SECTION n [LIBRARIES lib...])
# One program: executable, man page NAME.SECTION.gz and bash completion from its option table,
# install rules.  See tools/README.md for the files that the program's folder holds.
find_program(P2P_GZIP gzip REQUIRED)

function(p2p_program name)
  cmake_parse_arguments(arg "" "NAMESPACE;SECTION" "LIBRARIES" ${ARGN})
  file(GLOB srcs CONFIGURE_DEPENDS ${CMAKE_CURRENT_SOURCE_DIR}/*.cc)
  list(FILTER srcs EXCLUDE REGEX "/main\\.cc$")
  # All but main(), so that tests and the page generator link the very same table.
  string(REPLACE "-" "_" lib ${name})
  add_library(${lib}_app STATIC ${srcs})
  target_include_directories(${lib}_app PUBLIC ${PROJECT_SOURCE_DIR}/tools)
  target_link_libraries(${lib}_app PUBLIC p2p_cli ${arg_LIBRARIES})
  add_executable(${name} main.cc)
  target_link_libraries(${name} PRIVATE ${lib}_app)

  add_executable(${name}-doc ${PROJECT_SOURCE_DIR}/tools/lib/cli/clidoc_main.cc)
  target_link_libraries(${name}-doc PRIVATE ${lib}_app)
  target_compile_definitions(${name}-doc PRIVATE P2P_APP_NAMESPACE=p2p::${arg_NAMESPACE}
    P2P_APP_HEADER="${name}/app.h")
  set(man ${CMAKE_CURRENT_BINARY_DIR}/${name}.${arg_SECTION})
  set(comp ${CMAKE_CURRENT_BINARY_DIR}/completions/${name})
  # gzip -n: no name and no time in the file, so that the same page gives the same bytes.
  add_custom_command(OUTPUT ${man} ${man}.gz ${comp}
    COMMAND ${name}-doc man > ${man}
    COMMAND ${P2P_GZIP} -9nkf ${man}
    COMMAND ${CMAKE_COMMAND} -E make_directory ${CMAKE_CURRENT_BINARY_DIR}/completions
    COMMAND ${name}-doc bash > ${comp}
    DEPENDS ${name}-doc VERBATIM)
  add_custom_target(${name}-pages ALL DEPENDS ${man}.gz ${comp})

  install(TARGETS ${name} RUNTIME DESTINATION ${CMAKE_INSTALL_BINDIR})
  install(FILES ${man}.gz DESTINATION ${CMAKE_INSTALL_MANDIR}/man${arg_SECTION})
  install(FILES ${comp} DESTINATION ${CMAKE_INSTALL_DATADIR}/bash-completion/completions)
endfunction()
