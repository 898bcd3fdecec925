// aotFunction: forward and backward of a function, traced ahead of time and compiled by compilers of your own.
import { anomaly, backwardState, noGrad } from '../autograd/index.ts'
import { UnsupportedError, present } from '../errors/index.ts'
import { announce, emit, wants } from '../events/index.ts'
import { GuardedCache, guardedCall, watchingModules } from '../guards/index.ts'
import type { Change } from '../guards/index.ts'
import { dtypeInfo } from '../kernels/index.ts'
import { asStrided, copy_ } from '../ops/index.ts'
import { checkOptions } from '../protocol/index.ts'
import { captureStack } from '../provenance/index.ts'
import type { Frame } from '../provenance/index.ts'
import { treeFlatten, treeUnflatten } from '../pytree/index.ts'
import { Tensor, asTensor } from '../tensor/index.ts'
import { watchMemory } from './callTape.ts'
import { compileJoint, traceJoint } from './joint.ts'
import type { JointOptions } from './joint.ts'
import { memoryRead } from './partition.ts'
import type { JointGraph } from './partition.ts'

/**
 * Traces `fn` for the shapes of its arguments, and compiles its forward graph and (if an input requires grad) its backward graph. It is traced again when something that its graphs
 * rely on has changed: the shapes, dtypes and gradients of its arguments and of tensors from outside, numbers and other values, the grad mode, the default dtype, the mode and the parameters of
 * modules, their hooks (docs/guide/compile.md has the list). Numbers and other values are constants of the graph; tensors that are no arguments are further inputs. Random operators draw anew at each
 * call: the graphs take seeds and offsets as inputs. `fn` runs while it is traced only, and a second time if it writes to arguments that share memory. Results that are arguments, or views of them, are so at each call. PyTorch's functorch.compile.aot_function.
 *
 *     const f = aotFunction((x) => x.sin().sum(), { fwCompiler: (gm) => { console.log(gm.code); return (...i) => gm.forward(...i) } })
 */
export function aotFunction<A extends readonly unknown[], R>(fn: (...args: A) => R, options: JointOptions): (...args: A) => R {
  checkOptions('aotFunction', options, { fwCompiler: true, bwCompiler: true, partition: true })
  const name = fn.name === '' ? 'aot' : fn.name
  const cache = new GuardedCache<Entry>()
  return (...args) => {
    const call = guardedCall(args)
    const { leaves, spec, tensors } = call
    const entry = cache.find(call) ?? compileFor()
    if (entry === EAGER) return fn(...args)
    const { template, run } = entry
    const results = run(tensors)
    let next = 0
    return treeUnflatten(
      template.leaves.map((leaf) => (leaf instanceof Tensor ? results[next++] : leaf)),
      template.spec,
    ) as R

    function compileFor(): Entry {
      const missed = cache.missed(call)
      if (missed !== null) announceRetrace(name, missed)
      const backwards = backwardState.started
      let walked = false
      const templates: Template[] = []
      const flat = (...given: readonly Tensor[]): readonly Tensor[] => {
        let position = 0
        const filled = leaves.map((leaf) => (leaf instanceof Tensor ? given[position++] : leaf))
        // The structure is that of `args`, filled with tensors for tensors.
        const template = treeFlatten(fn(...(treeUnflatten(filled, spec) as A)))
        walked ||= backwardState.started > backwards
        templates.push(template)
        return template.leaves.filter((leaf) => leaf instanceof Tensor)
      }
      const unique = (all: readonly Tensor[]): Inputs => distinct(all)
      const whole = (all: readonly Tensor[]): Inputs => bases(all)
      const attempt = (split: (all: readonly Tensor[]) => Inputs): { readonly joint: JointGraph; readonly inputs: readonly Tensor[] } => {
        const { inputs, parts } = split(tensors)
        return { joint: traceJoint((...fakes) => flat(...parts(fakes)), inputs, { keepAliases: true }), inputs }
      }
      let split = unique
      const traced = watchingModules([fn, ...leaves], () => {
        const first = attempt(split)
        if (![...first.joint.writeBacks.values()].some((i) => sharesMemory(first.inputs, i))) return first
        // If one of several inputs that share memory is written, the memory is the input, and they are views of it.
        split = whole
        return attempt(split)
      })
      const { joint, inputs } = traced.result
      const outer = joint.constants ?? []
      const remember = (made: Entry): Entry => {
        cache.add(call, { outer, modules: traced.modules }, made)
        return made
      }
      // A graph cannot look for NaN in a backward of its own, nor see what is written to a tensor from outside through an argument.
      if ((anomaly.enabled && walked) || writesAcross(joint, tensors, outer)) return remember(EAGER)
      const { run } = compileJoint(joint, inputs, name, options)
      const read = memoryRead(joint)
      return remember({
        run: (all) => {
          const given = split(all).inputs
          const every = [...given, ...outer]
          const outputs = run(...given)
          const results = writeBack(outputs, every, joint)
          watch(outputs, every, joint, read)
          return withAliases(results, every, joint)
        },
        template: present(templates.at(-1), 'what the function returned'),
      })
    }
  }
}

/** Whether a graph that writes gets one memory as an argument and from outside. */
const writesAcross = ({ writeBacks }: JointGraph, tensors: readonly Tensor[], outer: readonly Tensor[]): boolean =>
  writeBacks.size > 0 && tensors.some((tensor) => outer.some((other) => sharesMemory([tensor, other], 0)))

function announceRetrace(name: string, { expected, actual, text }: Change): void {
  const user = (): Frame | null => captureStack().userFrame ?? null
  if (wants('guard')) emit({ kind: 'guard', what: 'state', expected, actual, user: user() })
  announce({ kind: 'recompile', reason: text }, () => ({ kind: 'recompile', name, reason: text, expected, actual, user: user() }))
}

/** How calls like the traced one are answered; EAGER: by the function itself. */
type Entry = Compiled | typeof EAGER

const EAGER = 'eager'

interface Compiled {
  readonly run: (tensors: readonly Tensor[]) => readonly unknown[]
  readonly template: Template
}

/** What the function returned when it was traced: the tensors in it are replaced at each call, other values are constants. */
type Template = ReturnType<typeof treeFlatten>

/** Inputs of the graph, and the arguments as parts of what stands for those inputs. */
interface Inputs {
  readonly inputs: readonly Tensor[]
  readonly parts: (inputs: readonly Tensor[]) => readonly Tensor[]
}

const sharesMemory = (tensors: readonly (Tensor | undefined)[], i: number): boolean =>
  tensors.some((other, k) => k !== i && other !== undefined && other.storage !== null && other.storage === tensors[i]?.storage)

/** Each tensor is one input, even if it is several arguments. */
function distinct(tensors: readonly Tensor[]): Inputs {
  const inputs = [...new Set(tensors)]
  return { inputs, parts: (given) => tensors.map((tensor) => asTensor(given[inputs.indexOf(tensor)], 'an input')) }
}

/** Each memory that several tensors share is one input, of one dimension; they are views of it. Throws UnsupportedError if one of them requires grad. */
function bases(tensors: readonly Tensor[]): Inputs {
  const shared = [...new Set(tensors)].map((tensor, i, all) => (sharesMemory(all, i) ? tensor.storage : tensor))
  const keys = [...new Set(shared)]
  const inputs = keys.map((key) => (key instanceof Tensor ? key : baseOf(tensors.filter((tensor) => tensor.storage === key))))
  const parts = (given: readonly Tensor[]): readonly Tensor[] =>
    tensors.map((tensor) => {
      const own = keys.indexOf(tensor)
      if (own >= 0) return asTensor(given[own], 'an input')
      const base = asTensor(given[keys.indexOf(tensor.storage)], 'a shared memory')
      return asStrided(base, tensor.shape, tensor.strides, tensor.offset)
    })
  return { inputs, parts }
}

/** A tensor that covers the memory of some. */
function baseOf(tensors: readonly Tensor[]): Tensor {
  const first = present(tensors[0], 'a tensor')
  if (tensors.some((tensor) => tensor.requiresGrad || tensor.dtype !== first.dtype))
    throw new UnsupportedError(
      'aotFunction: an argument is modified in place that shares memory with another one which requires grad, or has another dtype. Clone one of them.',
    )
  const storage = first.realize()
  return new Tensor([Math.floor(storage.nbytes / dtypeInfo[first.dtype].size)], first.dtype, storage)
}

/** Copies to the inputs what the function wrote to them; returns the other outputs. */
function writeBack(outputs: readonly unknown[], inputs: readonly unknown[], { writeBacks, heads }: JointGraph): readonly unknown[] {
  for (const [position, input] of writeBacks) {
    const copy = (): Tensor => copy_(asTensor(inputs[input], 'a written input'), asTensor(outputs[position], 'the new value of an input'))
    // A write that was recorded gives the input a history.
    if (heads.includes(position)) copy()
    else noGrad(copy)
  }
  return outputs.slice(0, outputs.length - writeBacks.size)
}

/** A backward is refused, as in eager mode, if the program has written to what its derivatives read. */
function watch(outputs: readonly unknown[], inputs: readonly Tensor[], { heads, writeBacks }: JointGraph, read: ReturnType<typeof memoryRead>): void {
  const [head] = heads
  if (head === undefined) return
  const memory = [
    ...read.inputs.map((i) => inputs[i]),
    ...read.outputs.map((i) => outputs[i]),
    ...read.outputs.map((i) => inputs[writeBacks.get(i) ?? -1]),
  ]
  watchMemory(
    asTensor(outputs[head], 'a differentiable output').gradFn,
    memory.filter((value) => value instanceof Tensor),
  )
}

/** The results of the function: outputs of the graph, and inputs or views of them. */
function withAliases(outputs: readonly unknown[], inputs: readonly Tensor[], { aliases = new Map() }: JointGraph): readonly unknown[] {
  const results: unknown[] = []
  let next = 0
  while (results.length < outputs.length + aliases.size) {
    const alias = aliases.get(results.length)
    results.push(alias === undefined ? outputs[next++] : alias.view(asTensor(inputs[alias.input], 'an input')))
  }
  return results
}
