// aotFunction: forward and backward of a function, traced ahead of time and compiled by compilers of your own.
import { anomaly, backwardState, noGrad } from '../../autograd/index.ts'
import { UnsupportedError, present } from '../../errors/index.ts'
import { announce, emit, wants } from '../../events/index.ts'
import { GuardedCache, guardedCall, watchingModules } from '../../guards/index.ts'
import type { Change, GuardedCall } from '../../guards/index.ts'
import { copy_ } from '../../ops/index.ts'
import { checkCount, checkOptions } from '../../protocol/index.ts'
import { captureStack } from '../../provenance/index.ts'
import type { Frame } from '../../provenance/index.ts'
import { treeFlatten, treeUnflatten } from '../../pytree/index.ts'
import { Tensor, asTensor } from '../../tensor/index.ts'
import { Effects } from './effects.ts'
import { compileJoint } from './compileJoint.ts'
import { traceJoint } from './traceJoint.ts'
import type { JointOptions } from './compileJoint.ts'
import type { JointGraph } from '../joint/jointGraph.ts'
import { bases, losesHistory, sharesMemory, writesAcross } from './sharedMemory.ts'
import type { Split } from './sharedMemory.ts'
import { watch, watchedOf } from './watchedMemory.ts'

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
  return new TracedFunction(fn, options).call
}

/** How one trace of a function went. */
interface Attempt {
  readonly joint: JointGraph
  readonly inputs: readonly Tensor[]
  readonly split: Split
  readonly effects: Effects
  readonly template: Template
  /** Whether the function runs a backward. */
  readonly walks: boolean
}

/** {@link aotFunction}, which may also be traced before its first call. */
export class TracedFunction<A extends readonly unknown[], R> {
  readonly #fn: (...args: A) => R
  readonly #name: string
  readonly #options: JointOptions
  readonly #cache = new GuardedCache<Entry>()

  constructor(fn: (...args: A) => R, options: JointOptions) {
    this.#fn = fn
    this.#name = fn.name === '' ? 'aot' : fn.name
    this.#options = options
  }

  readonly call = (...args: A): R => {
    const { entry, tensors } = this.#entryFor(args)
    if (entry === EAGER) return this.#fn(...args)
    const { template, run } = entry
    const results = run(tensors)
    let next = 0
    return treeUnflatten(
      template.leaves.map((leaf) => (leaf instanceof Tensor ? results[next++] : leaf)),
      template.spec,
    ) as R
  }

  /** Traces the function for such arguments, which may be fake tensors, without calling it. */
  prepare(args: A): void {
    this.#entryFor(args)
  }

  #entryFor(args: A): { readonly entry: Entry; readonly tensors: readonly Tensor[] } {
    const call = guardedCall(args)
    const { tensors } = call
    for (const tensor of tensors)
      if (tensor.constructor !== Tensor)
        throw new UnsupportedError(
          `aotFunction: an argument is of a subclass of Tensor, ${tensor.constructor.name}. A graph has plain tensors only, and would leave out what the subclass does.`,
        )
    return { entry: this.#cache.find(call) ?? this.#compile(call), tensors }
  }

  #compile(call: GuardedCall): Entry {
    const missed = this.#cache.missed(call)
    if (missed !== null) announceRetrace(this.#name, missed)
    const args = [...new Set(call.tensors)]
    const { result, modules } = watchingModules([this.#fn, ...call.leaves], () => this.#trace(call, args))
    const outer = result.joint.constants ?? []
    const entry = needsEager(result, call.tensors, args) ? EAGER : this.#compiled(result)
    this.#cache.add(call, { outer, modules }, entry)
    return entry
  }

  #trace(call: GuardedCall, args: readonly Tensor[]): Attempt {
    const first = this.#attempt(call, args, (all) => ({ inputs: all, parts: (given) => given }))
    if (![...first.joint.writeBacks.values()].some((i) => sharesMemory(first.inputs, i))) return first
    // If one of several inputs that share memory is written, the memory is the input, and they are views of it.
    return this.#attempt(call, args, bases)
  }

  #attempt({ leaves, spec }: GuardedCall, args: readonly Tensor[], split: Split): Attempt {
    const { inputs, parts } = split(args)
    const effects = new Effects()
    let template: Template | null = null
    let walks = false
    const joint = traceJoint(
      (...given) => {
        const fakes = parts(given)
        effects.begin(fakes)
        const filled = leaves.map((leaf) => (leaf instanceof Tensor ? fakes[args.indexOf(leaf)] : leaf))
        const backwards = backwardState.started
        // The structure is that of the arguments, filled with tensors for tensors.
        template = treeFlatten(this.#fn(...(treeUnflatten(filled, spec) as A)))
        walks = backwardState.started > backwards
        return template.leaves.filter((leaf) => leaf instanceof Tensor)
      },
      inputs,
      { effects },
    )
    return { joint, inputs, split, effects, template: present<Template>(template, 'what the function returned'), walks }
  }

  #compiled({ joint, inputs, split, effects, template }: Attempt): Compiled {
    const { run } = compileJoint(joint, inputs, this.#name, this.#options)
    const watched = watchedOf(joint)
    const outer = joint.constants ?? []
    return {
      template,
      run: (all) => {
        const args = [...new Set(all)]
        effects.before(args)
        const given = split(args).inputs
        const every = [...given, ...outer]
        const outputs = run(...given)
        writeBack(outputs, every, joint)
        const results = effects.finish({ outputs, inputs: every, args })
        watch(outputs, every, joint, watched)
        return results
      },
    }
  }
}

/**
 * Whether a graph cannot do what the function does: it looks for no NaN in a backward of its own, does not see what is written to a tensor from outside through an argument, and gives tensors that share
 * memory no history each.
 */
const needsEager = ({ joint, inputs, effects, walks }: Attempt, tensors: readonly Tensor[], args: readonly Tensor[]): boolean =>
  (anomaly.enabled && walks) || writesAcross(joint, tensors) || effects.splitsHistory || losesHistory(joint, inputs, args)

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

/** Copies to the inputs what the function wrote to them. */
function writeBack(outputs: readonly unknown[], inputs: readonly unknown[], { writeBacks, heads }: JointGraph): void {
  for (const [position, input] of writeBacks) {
    const copy = (): Tensor => copy_(asTensor(inputs[input], 'a written input'), asTensor(outputs[position], 'the new value of an input'))
    // A write that was recorded gives the input a history.
    if (heads.includes(position)) copy()
    else noGrad(copy)
  }
}
