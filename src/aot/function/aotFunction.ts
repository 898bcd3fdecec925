// aotFunction: forward and backward of a function, traced ahead of time and compiled by compilers of your own.
import { anomaly, backwardState, noGrad } from '../../autograd/index.ts'
import { isDetached } from '../../dispatch/index.ts'
import { UnsupportedError, present } from '../../errors/index.ts'
import { announce, emit, wants } from '../../events/index.ts'
import type { Node } from '../../fx/index.ts'
import { GuardedCache, guardedCall, watchingModules } from '../../guards/index.ts'
import type { Change } from '../../guards/index.ts'
import { dtypeInfo } from '../../kernels/index.ts'
import { asStrided, copy_, detach, permute } from '../../ops/index.ts'
import { checkCount, checkOptions } from '../../protocol/index.ts'
import { captureStack } from '../../provenance/index.ts'
import type { Frame } from '../../provenance/index.ts'
import { treeFlatten, treeUnflatten } from '../../pytree/index.ts'
import { Tensor, asTensor, memoryOrder } from '../../tensor/index.ts'
import { watchMemory } from './callTape.ts'
import type { Watched } from './callTape.ts'
import { Effects } from './effects.ts'
import { compileJoint } from './compileJoint.ts'
import { traceJoint } from './traceJoint.ts'
import type { JointOptions } from './compileJoint.ts'
import { viewRoot } from '../joint/jointGraph.ts'
import type { JointGraph } from '../joint/jointGraph.ts'
import { memoryRead } from '../joint/partition.ts'

/**
 * Traces `fn` for the shapes of its arguments, and compiles its forward graph and (if an input requires grad) its backward graph. It is traced again when something that its graphs
 * rely on has changed: the shapes, dtypes and gradients of its arguments and of tensors from outside, numbers and other values, the grad mode, the default dtype, the mode and the parameters of
 * modules, their hooks (docs/guide/compile.md has the list). Numbers and other values are constants of the graph; tensors that are not arguments are further inputs. Random operators draw anew at each
 * call: the graphs take seeds and offsets as inputs. `fn` runs while it is traced only, and a second time if it writes to arguments that share memory; at every call if tensors that share memory
 * have a history each in the end, since one of them is detached and was written to. Results that are arguments, or views of them, are so at each call. PyTorch's functorch.compile.aot_function.
 *
 *     const f = aotFunction((x) => x.sin().sum(), { fwCompiler: (gm) => { console.log(gm.code); return (...i) => gm.forward(...i) } })
 */
export function aotFunction<A extends readonly unknown[], R>(fn: (...args: A) => R, options: JointOptions): (...args: A) => R {
  checkCount('aotFunction', arguments, 2)
  checkOptions('aotFunction', options, { fwCompiler: true, bwCompiler: true, partition: true })
  return traced(fn, options).call
}

/** A function that is traced for the kinds of its arguments. */
interface Traced<A extends readonly unknown[], R> {
  readonly call: (...args: A) => R
  /** Traces the function for such arguments, which may be fake tensors, without calling it. */
  prepare(args: A): void
}

/** {@link aotFunction}, which may also be traced before its first call. */
export function traced<A extends readonly unknown[], R>(fn: (...args: A) => R, options: JointOptions): Traced<A, R> {
  const name = fn.name === '' ? 'aot' : fn.name
  const cache = new GuardedCache<Entry>()
  const call = (...args: A): R => {
    const { entry, tensors } = entryFor(args)
    if (entry === EAGER) return fn(...args)
    const { template, run } = entry
    const results = run(tensors)
    let next = 0
    return treeUnflatten(
      template.leaves.map((leaf) => (leaf instanceof Tensor ? results[next++] : leaf)),
      template.spec,
    ) as R
  }
  return { call, prepare: (args) => void entryFor(args) }

  function entryFor(args: A): { readonly entry: Entry; readonly tensors: readonly Tensor[] } {
    const call = guardedCall(args)
    const { leaves, spec, tensors } = call
    for (const tensor of tensors)
      if (tensor.constructor !== Tensor)
        throw new UnsupportedError(
          `aotFunction: an argument is of a subclass of Tensor, ${tensor.constructor.name}. A graph has plain tensors only, and would leave out what the subclass does.`,
        )
    return { entry: cache.find(call) ?? compileFor(), tensors }

    function compileFor(): Entry {
      const missed = cache.missed(call)
      if (missed !== null) announceRetrace(name, missed)
      const backwards = backwardState.started
      let walked = false
      const templates: Template[] = []
      const effects: Effects[] = []
      const args = [...new Set(tensors)]
      const attempt = (split: (all: readonly Tensor[]) => Inputs): { readonly joint: JointGraph; readonly inputs: readonly Tensor[] } => {
        const { inputs, parts } = split(args)
        const found = new Effects()
        const flat = (...given: readonly Tensor[]): readonly Tensor[] => {
          const fakes = parts(given)
          found.begin(fakes)
          const filled = leaves.map((leaf) => (leaf instanceof Tensor ? fakes[args.indexOf(leaf)] : leaf))
          // The structure is that of `args`, filled with tensors for tensors.
          const template = treeFlatten(fn(...(treeUnflatten(filled, spec) as A)))
          walked ||= backwardState.started > backwards
          templates.push(template)
          return template.leaves.filter((leaf) => leaf instanceof Tensor)
        }
        effects.push(found)
        return { joint: traceJoint(flat, inputs, { effects: found }), inputs }
      }
      let split: (all: readonly Tensor[]) => Inputs = (all) => ({ inputs: all, parts: (given) => given })
      const trace = watchingModules([fn, ...leaves], () => {
        const first = attempt(split)
        if (![...first.joint.writeBacks.values()].some((i) => sharesMemory(first.inputs, i))) return first
        // If one of several inputs that share memory is written, the memory is the input, and they are views of it.
        split = bases
        return attempt(split)
      })
      const { joint, inputs } = trace.result
      const outer = joint.constants ?? []
      const remember = (made: Entry): Entry => {
        cache.add(call, { outer, modules: trace.modules }, made)
        return made
      }
      const effect = present(effects.at(-1), 'what the function does besides computing')
      // A graph cannot look for NaN in a backward of its own, see what is written to a tensor from outside through an argument, nor give tensors that share memory a history each.
      if ((anomaly.enabled && walked) || writesAcross(joint, tensors, outer) || effect.splitsHistory || losesHistory(joint, inputs, args))
        return remember(EAGER)
      const { run } = compileJoint(joint, inputs, name, options)
      const watched = watchedOf(joint)
      return remember({
        run: (all) => {
          const args = [...new Set(all)]
          effect.before(args)
          const given = split(args).inputs
          const every = [...given, ...outer]
          const outputs = run(...given)
          writeBack(outputs, every, joint)
          const results = effect.finish({ outputs, inputs: every, args })
          watch(outputs, every, joint, watched)
          return results
        },
        template: present(templates.at(-1), 'what the function returned'),
      })
    }
  }
}

/** Whether a graph that writes gets one memory as an argument and from outside. */
const writesAcross = ({ writeBacks }: JointGraph, tensors: readonly Tensor[], outer: readonly Tensor[]): boolean =>
  writeBacks.size > 0 && tensors.some((tensor) => outer.some((other) => sharesMemory([tensor, other], 0)))

/** Whether a memory gets a history that stands for several arguments, and is none of them, nor what they are views of. */
const losesHistory = ({ writeBacks, heads }: JointGraph, inputs: readonly Tensor[], args: readonly Tensor[]): boolean =>
  [...writeBacks].some(([position, i]) => {
    const input = inputs[i]
    return input !== undefined && heads.includes(position) && !args.some((arg) => arg === input || rootOf(arg) === rootOf(input))
  })

const rootOf = (tensor: Tensor): Tensor => tensor.viewBase ?? tensor

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

/**
 * Each memory that several tensors share is one input: what they are views of, or all of the memory if none of them has a history. They are views of it in the trace. Throws UnsupportedError if they have a
 * history, and are not views of one tensor, or its elements do not lie without gaps.
 */
function bases(tensors: readonly Tensor[]): Inputs {
  const keys = [...new Set(tensors.map((tensor, i) => (sharesMemory(tensors, i) ? tensor.storage : tensor)))]
  const inputs = keys.map((key) => (key instanceof Tensor ? key : baseOf(tensors.filter((tensor) => tensor.storage === key))))
  const parts = (given: readonly Tensor[]): readonly Tensor[] =>
    tensors.map((tensor) => {
      const at = keys.indexOf(keys.includes(tensor) ? tensor : tensor.storage)
      const base = asTensor(given[at], 'an input')
      const whole = inputs[at]
      if (whole === tensor || whole === undefined) return base
      const window = (): Tensor => asStrided(base, tensor.sizes, tensor.steps, base.offset + tensor.offset - whole.offset)
      // A part without a history never gets that of the whole.
      if (isDetached(tensor)) return detach(window())
      return tensor.ownHistory === null ? noGrad(window) : window()
    })
  return { inputs, parts }
}

/** A tensor that covers the memory of some, in the order of that memory. */
function baseOf(tensors: readonly Tensor[]): Tensor {
  const first = present(tensors[0], 'a tensor')
  const roots = new Set(tensors.map(rootOf))
  const [root] = roots
  const refuse = (why: string): never => {
    throw new UnsupportedError(`aotFunction: an argument is modified in place that shares memory with another one ${why}. Clone one of them.`)
  }
  if (tensors.some(({ dtype }) => dtype !== first.dtype)) refuse('of another dtype')
  const order = root === undefined || roots.size > 1 || root.dtype !== first.dtype ? null : memoryOrder(root.sizes, root.steps)
  if (order === null && ![...tensors, ...roots].some(({ requiresGrad }) => requiresGrad)) {
    const storage = first.realize()
    return new Tensor([Math.floor(storage.nbytes / dtypeInfo[first.dtype].size)], first.dtype, storage)
  }
  if (root === undefined || roots.size > 1) return refuse('which requires grad, and they are not views of one tensor')
  if (tensors.some((tensor) => tensor !== root && tensor.isLeaf && tensor.requiresGrad)) refuse('that is a leaf which requires grad')
  if (order === null) return refuse('which requires grad, and is a view of a tensor with gaps in its memory')
  return root.contiguousLayout ? root : permute(root, order)
}

/** Copies to the inputs what the function wrote to them. */
function writeBack(outputs: readonly unknown[], inputs: readonly unknown[], { writeBacks, heads }: JointGraph): void {
  for (const [position, input] of writeBacks) {
    const copy = (): Tensor => copy_(asTensor(inputs[input], 'a written input'), asTensor(outputs[position], 'the new value of an input'))
    // A write that was recorded gives the input a history.
    if (heads.includes(position)) copy()
    else noGrad(copy)
  }
}

/** Where a call has memory that derivatives read: its position among the outputs or the inputs. */
interface Place {
  readonly among: 'outputs' | 'inputs'
  readonly position: number
  readonly root: Node
}

/** The memory of inputs and outputs that derivatives read, and the program can write to. */
function watchedOf(joint: JointGraph): readonly Place[] {
  const read = memoryRead(joint)
  const { inputs, outputs, writeBacks } = joint
  const overwritten = new Set(writeBacks.values())
  const places: Place[] = []
  for (const [position, node] of inputs.entries())
    if (read.has(viewRoot(node)) && !overwritten.has(position)) places.push({ among: 'inputs', position, root: viewRoot(node) })
  for (const [position, node] of outputs.entries()) {
    const root = viewRoot(node)
    if (!read.has(root)) continue
    places.push({ among: 'outputs', position, root })
    const input = writeBacks.get(position)
    if (input !== undefined) places.push({ among: 'inputs', position: input, root })
  }
  return places
}

/** A backward is refused, as in eager mode, if the program has written to what its derivatives read. */
function watch(outputs: readonly unknown[], inputs: readonly Tensor[], { heads: [head] }: JointGraph, places: readonly Place[]): void {
  if (head === undefined) return
  const watched: Watched[] = []
  for (const { among, position, root } of places) {
    const tensor = among === 'inputs' ? inputs[position] : outputs[position]
    if (tensor instanceof Tensor) watched.push({ tensor, root })
  }
  watchMemory(asTensor(outputs[head], 'a differentiable output').gradFn, watched)
}
