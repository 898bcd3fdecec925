// Backends with a planted fault. Nothing is imported, so that the text of this file can be part of a backend's module.

/** The operator of a node as its schema names it: `torch.relu`; null for placeholders and the like. */
export const operatorOf = (node) => (typeof node.target === 'function' ? (node.target.op?.qualname ?? node.target.name) : null)

const isFloat = (tensor) => tensor.dtype.startsWith('float')

/** What the kinds of wrong values make of a right one. `index`: of the element that is wrong. */
const WRONG = {
  factor: (value) => value.mul(1.5),
  offset: (value) => value.add(0.5),
  negative: (value, { torch }) => torch.where(value.lt(0), value.mul(0.5), value),
  element: (value, { torch }) => value.add(atOne(torch, value, 1).mul(value.detach().abs().add(1))),
  makesNaN: (value, { torch }) => value.add(atOne(torch, value, NaN)),
  besideNaN: (value) => value.mul(1.5),
  integer: (value, { torch }) => {
    // Off by one within its range, so that an index stays one.
    const highest = value.max()
    return torch.where(value.eq(highest), value.min(), value.add(1))
  },
  bool: (value) => value.logicalNot(),
}

/** Zeros in the shape of a tensor, but for one element. */
function atOne(torch, value, element) {
  const numbers = Array.from({ length: value.numel }, () => 0)
  numbers[value.numel >> 1] = element
  return torch.tensor(numbers, { dtype: value.dtype }).reshape(value.shape)
}

/** Whether a kind spoils tensors of that dtype. */
const spoils = (kind, tensor) => (kind === 'bool' ? tensor.dtype === 'bool' : kind === 'integer' ? tensor.dtype === 'int64' : isFloat(tensor))

/** Where the kinds of wrong memory put a right result: the tensor that the program gets in its place; null for none. `buffer` is that of the run before. */
const MEMORY = {
  reused: ({ result, buffer }) => (buffer === null ? result.clone() : buffer.copy_(result)),
  stale: ({ result, buffer }) => buffer ?? result.clone(),
  donated: ({ result, inputs: [input] }) => (input === undefined ? null : input.detach().copy_(result)),
  shared: ({ result, others: [other] }) => (other === undefined ? null : other.detach().copy_(result)),
}

/** How the kinds of deaths end a process. */
const DEATHS = {
  exit: () => process.exit(7),
  kill: () => process.kill(process.pid, 'SIGKILL'),
  hang: () => {
    for (;;);
  },
  memory: () => {
    const all = []
    for (;;) all.push(Array.from({ length: 2 ** 20 }, () => all.length))
  },
}

/**
 * A backend that runs graphs node by node on eager kernels, with a fault:
 * - `operator`: whose nodes are faulty; `dtype`: only those whose result has this dtype; `producer`: only those that take the result of this other operator;
 * - `kind`: see WRONG and DEATHS; `throws` and the deaths happen in the `phase` 'compile' or 'run'; `written`: a graph with such a node overwrites its
 *   first input of floats; `reused`: the first output that such a node computes is a tensor that the next run overwrites; `stale`: it is that of the first run; `donated`: it is written to
 *   the memory of an input; `shared`: it is written to the memory of another output;
 * - `from`: from which run of a compiled graph on; `rate`: in which part of the runs, at random.
 * `base(node, args, kwargs, run)`: computes a node that is not faulty; by default on eager kernels.
 */
export function faultyBackend({ Interpreter, Tensor, torch, noGrad }, fault, base = (node, args, kwargs, run) => run()) {
  const { operator, dtype = null, producer = null, kind, phase = 'run', from = 1, rate = 1 } = fault
  const end = (name) => {
    if (kind === 'throws') throw new RangeError(`suspect: no kernel for ${name}`)
    DEATHS[kind]()
  }
  const isMarked = (node) =>
    operatorOf(node) === operator && (producer === null || node.allInputNodes.some((input) => operatorOf(input) === producer))
  const ends = kind === 'throws' || kind in DEATHS

  class Suspect extends Interpreter {
    isOn = false
    marked = new Set()

    runNode(node) {
      if (node.op !== 'call_function') return super.runNode(node)
      const [args, kwargs] = this.fetchArgsKwargs(node)
      const value = base(node, args, kwargs, () => super.runNode(node))
      if (!isMarked(node)) return value
      const results = Array.isArray(value) ? value : [value]
      const at = results.findIndex((result) => result instanceof Tensor && result.numel > 0 && (dtype === null || result.dtype === dtype))
      if (at < 0) return value
      if (ends) {
        if (this.isOn && phase === 'run') end(operator)
        return value
      }
      this.marked.add(results[at])
      if (!this.isOn || !(kind in WRONG) || !spoils(kind, results[at])) return value
      const wrong = WRONG[kind](results[at], { torch }).to(results[at].dtype)
      return Array.isArray(value) ? value.with(at, wrong) : wrong
    }
  }

  return (gm) => {
    const nodes = [...gm.graph.nodes]
    if (ends && phase === 'compile' && nodes.some((node) => isMarked(node) && hasDtype(node, dtype)) && Math.random() < rate) end(operator)
    let runs = 0
    let buffer = null
    return (...inputs) => {
      const suspect = new Suspect(gm)
      suspect.isOn = ++runs >= from && Math.random() < rate
      const output = suspect.run(...inputs)
      if (!suspect.isOn || suspect.marked.size === 0) return output
      if (kind === 'written') {
        const input = inputs.find((value) => value instanceof Tensor && isFloat(value) && value.numel > 0)
        if (input !== undefined) noGrad(() => input.detach().mul_(0.5))
      }
      if (!(kind in MEMORY) || !Array.isArray(output)) return output
      const at = output.findIndex((value) => suspect.marked.has(value) && isFloat(value))
      if (at < 0) return output
      return noGrad(() => {
        const result = output[at].detach()
        const fits = (value) => value instanceof Tensor && value.dtype === result.dtype && value.shape.join() === result.shape.join()
        const taken = MEMORY[kind]({ result, buffer, inputs: inputs.filter(fits), others: output.filter((value, i) => i !== at && fits(value)) })
        if (kind === 'reused' || kind === 'stale') buffer = taken
        return taken === null ? output : output.with(at, taken)
      })
    }
  }
}

/** Whether the result of a node has that dtype, as far as the graph says. */
function hasDtype(node, dtype) {
  const { val } = node.meta
  return dtype === null || val === undefined || (Array.isArray(val) ? val : [val]).some((one) => one?.dtype === dtype)
}
