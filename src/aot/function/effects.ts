// What a call of aotFunction does besides computing. Results that are arguments, views of them, or several views of one memory are not outputs of the graph, but made at each call of arguments and
// outputs; and arguments may get another shape, other memory, or another relation to gradients.
import { enableGrad, isNode, noGrad, producerOf } from '../../autograd/index.ts'
import type { Edge } from '../../autograd/index.ts'
import { becomeView, isDetached } from '../../dispatch/index.ts'
import { UnsupportedError, present } from '../../errors/index.ts'
import { detach } from '../../ops/index.ts'
import { Tensor, asTensor } from '../../tensor/index.ts'
import type { GradFn } from '../../tensor/index.ts'
import type { Memory } from '../trace/aliases.ts'
import { layoutOf, sameLayout } from '../meta/layout.ts'
import type { TensorLayout } from '../meta/layout.ts'
import type { ProxyTensorMode } from '../trace/proxyMode.ts'

/** The tensors of one call: outputs of the graph, its inputs, and the arguments of the function. */
export interface CallTensors {
  readonly outputs: readonly unknown[]
  readonly inputs: readonly Tensor[]
  readonly args: readonly Tensor[]
}

type Make = (call: CallTensors) => Tensor

/** An argument when the function began. */
interface Start {
  readonly tensor: Tensor
  readonly memory: Memory
  readonly layout: TensorLayout
  readonly requiresGrad: boolean
  readonly gradFn: GradFn | null
}

/** The node, or leaf, that view operators lead back to. */
export function originOf(tensor: Tensor): Edge {
  let node: Edge = tensor.requiresGrad ? (producerOf(tensor) ?? tensor) : null
  while (isNode(node) && node.isView) node = node.targets[0] ?? null
  return node
}

export class Effects {
  #mode: ProxyTensorMode | null = null
  #starts: readonly Start[] = []
  readonly #before: ((args: readonly Tensor[]) => void)[] = []
  readonly #after: ((call: CallTensors) => void)[] = []
  readonly #results: Make[] = []
  #relays = false
  #splitsHistory = false

  /** The trace begins. */
  enter(mode: ProxyTensorMode): void {
    this.#mode = mode
  }

  /** The function begins with these arguments, fake tensors. */
  begin(args: readonly Tensor[]): void {
    const mode = present(this.#mode, 'the mode of a trace')
    this.#starts = args.map((tensor) => {
      const { requiresGrad, gradFn } = tensor
      return { tensor, memory: mode.memoryOf(tensor), layout: layoutOf(tensor), requiresGrad, gradFn }
    })
  }

  /** The function has returned these tensors. Returns those that the graph shall return; `memories` are those of its inputs. */
  end(returned: readonly Tensor[], memories: () => readonly Memory[]): readonly Tensor[] {
    const mode = present(this.#mode, 'the mode of a trace')
    const outputs: Tensor[] = []
    const output = (tensor: Tensor): Make => {
      const position = outputs.includes(tensor) ? outputs.indexOf(tensor) : outputs.push(tensor) - 1
      return ({ outputs: values }) => asTensor(values[position], 'an output')
    }
    const users = new Map<Memory, number>()
    const parts = new Set([...returned, ...this.#starts.flatMap(({ tensor, memory }) => (mode.memoryOf(tensor) === memory ? [] : [tensor]))])
    for (const tensor of parts) users.set(mode.memoryOf(tensor), (users.get(mode.memoryOf(tensor)) ?? 0) + 1)
    const roots = new Map<Memory, Tensor>()
    /** What covers a memory, if it is an input, or shared by several results. */
    const wholeOf = (memory: Memory): { readonly root: Tensor; readonly make: Make } | null => {
      if (!memory.base.isFake && !mode.isOwn(memory.base)) mode.nodeOf(memory.base)
      const input = memories().indexOf(memory)
      const isShared = (users.get(memory) ?? 0) > 1 && mode.memoryOf(memory.base) === memory
      if (input < 0 && !isShared) return null
      const root = roots.get(memory) ?? mode.rootOf(memory)
      roots.set(memory, root)
      // A result that covers the memory is the very tensor that the others are views of.
      return { root, make: input < 0 ? output(root) : ({ inputs }) => asTensor(inputs[input], 'an input') }
    }
    // `onlyMemory`: the history does not matter.
    const makeOf = (tensor: Tensor, onlyMemory = false): Make => {
      const { requiresGrad } = tensor
      const isLeaf = requiresGrad && tensor.gradFn === null
      const whole = wholeOf(mode.memoryOf(tensor))
      const given =
        whole === null || whole.root === tensor || !(onlyMemory || isLeaf || !requiresGrad || originOf(tensor) === originOf(whole.root))
          ? null
          : whole
      if (whole !== null && whole.root !== tensor && given === null) this.#splitsHistory = true
      let make = given === null ? output(tensor) : viewOf(mode, tensor, given.make)
      if (isLeaf && !onlyMemory) {
        const plain = make
        make = (call) => plain(call).requiresGrad_(true)
      }
      return make
    }
    const made = new Map<Tensor, Make>()
    for (const [i, { tensor }] of this.#starts.entries()) made.set(tensor, ({ args }) => asTensor(args[i], 'an argument'))
    for (const tensor of returned) {
      const make = made.get(tensor) ?? makeOf(tensor)
      made.set(tensor, make)
      this.#results.push(make)
    }
    this.#starts.forEach((start, i) => this.#changesOf(start, i, mode, makeOf))
    return outputs
  }

  /** What has become of an argument. */
  #changesOf(
    { tensor, memory, layout, requiresGrad, gradFn }: Start,
    i: number,
    mode: ProxyTensorMode,
    makeOf: (tensor: Tensor, onlyMemory?: boolean) => Make,
  ): void {
    const change = (becomes: (call: CallTensors) => Tensor): void => {
      this.#relays = true
      this.#after.push((call) => {
        const arg = asTensor(call.args[i], 'an argument')
        const run = (): unknown => becomeView('aotFunction', arg, () => becomes(call))
        if (arg.gradFn === null) noGrad(run)
        else run()
      })
    }
    if (mode.memoryOf(tensor) !== memory) {
      const make = makeOf(tensor, true)
      change((call) => detach(make(call)))
    } else if (!sameLayout(layoutOf(tensor), layout)) change(makeOf(tensor))
    const hasHistory = gradFn !== null
    if (isDetached(tensor) && tensor.gradFn !== gradFn) this.#splitsHistory = true
    if (tensor.requiresGrad && !requiresGrad && tensor.gradFn === null) this.#before.push((args) => args[i]?.requiresGrad_(true))
    if (!tensor.requiresGrad && requiresGrad) this.#after.push(({ args }) => (hasHistory ? args[i]?.detach_() : args[i]?.requiresGrad_(false)))
    if (tensor.requiresGrad && tensor.gradFn === null && hasHistory)
      throw new UnsupportedError(
        'aotFunction: an argument was detached in place and then made a leaf that requires grad. Use a detached tensor of its own.',
      )
  }

  /** Whether arguments get another shape or other memory: what is saved of them must not. */
  get relaysArguments(): boolean {
    return this.#relays
  }

  /** Whether tensors that share memory have different histories in the end: one of them is detached, and was written to while gradients were recorded. */
  get splitsHistory(): boolean {
    return this.#splitsHistory
  }

  /** What is to be done before the graph runs. */
  before(args: readonly Tensor[]): void {
    for (const change of this.#before) change(args)
  }

  /** The results of the function; afterwards the arguments are what the function made of them. */
  finish(call: CallTensors): readonly Tensor[] {
    const known = new Map<Make, Tensor>()
    const results = this.#results.map((make) => {
      const value = known.get(make) ?? make(call)
      known.set(make, value)
      return value
    })
    for (const change of this.#after) change(call)
    return results
  }
}

/** A tensor as a view of what covers its memory, with the history that the program has given it. */
function viewOf(mode: ProxyTensorMode, tensor: Tensor, whole: Make): Make {
  const view = mode.viewOf(tensor)
  const within = tensor.ownHistory === null ? noGrad : enableGrad
  return (call) => within(() => view(whole(call)))
}
