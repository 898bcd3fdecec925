// The names of the package that programs and faulty backends use.

/** `load(name)` imports an entry: 'index', 'entries/compile', … of dist or of the sources. */
export async function loadApi(load) {
  const [main, compile, fx, debug] = await Promise.all(['index', 'entries/compile', 'entries/fx', 'entries/debug'].map(load))
  const { torch, Tensor, nn, optim, noGrad } = main
  return {
    torch,
    Tensor,
    nn,
    optim,
    noGrad,
    compile: main.compile,
    Interpreter: fx.Interpreter,
    registerBackend: compile.registerBackend,
    config: compile.config,
    debug,
    reset: compile.reset,
  }
}
