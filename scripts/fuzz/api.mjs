// The names of the package that programs and the fuzzer use, from its modules.

/** `load(name)` imports an entry: 'index', 'entries/aot', … of dist or of the sources. */
export async function loadApi(load) {
  const [main, aot, compileEntry, dispatch, func, debug, ops, room] = await Promise.all(
    ['index', 'entries/aot', 'entries/compile', 'entries/dispatch', 'entries/func', 'entries/debug', 'ops/index', 'dispatch/index'].map(load),
  )
  const { torch, Tensor, nn, optim, compile, noGrad, enableGrad, inferenceMode, isGradEnabled, setGradEnabled } = main
  const { withMode, dispatchBelowAutograd } = dispatch
  return {
    torch,
    Tensor,
    nn,
    optim,
    compile,
    noGrad,
    enableGrad,
    inferenceMode,
    isGradEnabled,
    setGradEnabled,
    reset: compileEntry.reset,
    disable: compileEntry.disable,
    graphBreak: compileEntry.graphBreak,
    allowInGraph: compileEntry.allowInGraph,
    config: compileEntry.config,
    debug,
    func,
    makeFx: aot.makeFx,
    reinplace: aot.reinplace,
    aotFunction: aot.aotFunction,
    withMode,
    dispatchBelowAutograd,
    /** Whether the library itself calls the operators, in a backward or an optimizer's step. */
    inLibrary: () => room.dispatchState.internal,
    publicOps: publicOps(ops, torch),
  }
}

/** The operators that programs can call, with how: a path from `torch`, or the name of a method. Memory of `empty` is not initialized. */
function publicOps({ allOps }, torch) {
  const camel = (name) => name.replace(/_([a-z0-9])/g, (_, c) => c.toUpperCase())
  return allOps().flatMap((op) => {
    if (op.name.startsWith('empty')) return []
    const name = camel(op.name)
    if (op.qualname.startsWith('torch.Tensor.')) return [{ schema: op.schema, path: name, method: true }]
    if (op.qualname.startsWith('torch.nn.functional.')) return [{ schema: op.schema, path: `torch.nn.functional.${name}`, method: false }]
    return op.qualname.split('.').length === 2 && name in torch ? [{ schema: op.schema, path: `torch.${name}`, method: false }] : []
  })
}
