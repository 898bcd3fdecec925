// What turns a program's function into the one under test.

/** Everything in the arguments but tensors, and the tensors' layouts: what a trace is valid for. */
function keyOf(value, Tensor) {
  return JSON.stringify(value, (_, v) => (v instanceof Tensor ? ['tensor', v.shape, v.dtype, v.requiresGrad] : typeof v === 'number' ? String(v) : v))
}

/** What a graph takes: nested arguments as they are; otherwise tensors, and numbers, which have places that it does not use. */
function inputsOf(args, Tensor) {
  const isNested = args.some((arg) => arg !== null && typeof arg === 'object' && !(arg instanceof Tensor))
  return isNested ? args : args.filter((arg) => arg instanceof Tensor || typeof arg === 'number')
}

/** f with results that are cut from their history: graphs of makeFx do not know what ran under noGrad. */
export function withoutHistory({ Tensor }) {
  const cut = (value) => {
    if (value instanceof Tensor) return value.requiresGrad ? value.detach() : value
    return Array.isArray(value) ? value.map(cut) : value
  }
  return (f) =>
    (...args) =>
      cut(f(...args))
}

const counted = ({ counters }) => counters.limits.verifySizes ?? 0

/** The wrappers by name. */
export function wrappers(api, backend) {
  const { Tensor, compile, config, debug, makeFx, reinplace, aotFunction } = api
  // A trace holds for the layouts and numbers that it was made with.
  const traced =
    (trace, run = (call) => call()) =>
    (f) => {
      const traces = new Map()
      return withoutHistory(api)((...args) => {
        const key = keyOf(args, Tensor)
        if (!traces.has(key)) traces.set(key, trace(f, args))
        return run(() => traces.get(key).forward(...inputsOf(args, Tensor)))
      })
    }
  // What is kept for lists of sizes is compared with the operators at every call, also in a backward outside of f; a difference, which compile gets over, is an error of the next call.
  const verified = (f) => {
    let seen = counted(debug)
    return function (...args) {
      config.verifySizes = true
      const result = f.apply(this, args)
      const found = counted(debug)
      const differs = found > seen
      seen = found
      if (differs) throw new Error('what is kept for a list of sizes gave other results than the operators')
      return result
    }
  }
  return {
    compile: (f) => compile(f, { backend }),
    automatic: (f) => verified(compile(f, { backend })),
    dynamic: (f) => verified(compile(f, { backend, dynamic: true })),
    makeFx: traced((f, args) => makeFx(f)(...args)),
    // What a graph overwrites a backward may need.
    reinplace: traced((f, args) => reinplace(makeFx(f)(...args), ...inputsOf(args, Tensor)), api.noGrad),
    aot: (f) =>
      aotFunction(f, {
        fwCompiler:
          (gm) =>
          (...inputs) =>
            gm.forward(...inputs),
      }),
  }
}
