// What can be seen of one run of a model, by name. A module is copied first. A function cannot be copied: its parameters are the leaves that its outputs depend on, and
// its buffers what it writes to; they are named after those of the module that it was compiled from, or that it is compared with.
import { GradNode, grad, producerOf } from '../../autograd/index.ts'
import type { Edge } from '../../autograd/index.ts'
import { withMode } from '../../dispatch/index.ts'
import { Module } from '../../module/index.ts'
import { clone, detach, zerosLike } from '../../ops/index.ts'
import { childPath } from '../../protocol/index.ts'
import { treeLeaves, treeMap } from '../../pytree/index.ts'
import { Tensor, exactElements, sameShape } from '../../tensor/index.ts'
import { sameBytes } from '../../kernels/index.ts'
import { isolated } from './isolated.ts'
import type { Trace } from './isolated.ts'
import { Rounding, moveInputs } from '../closeness/rounding.ts'

/** Something to run: a module, or a function that takes the inputs one by one. */
export type Runnable = Module | ((...inputs: never[]) => unknown)

/** How to run it. */
export interface Setup {
  readonly onlyFwd: boolean
  /** The loss for an output; null if there is nothing to differentiate. */
  readonly lossOf: (output: unknown) => Tensor | null
  /** Moves inputs and the results of operators by a few units in the last place, to see what rounding does; another number moves them otherwise. Default: not at all. */
  readonly moved?: number
  /** Whose names the tensors of a function get. */
  readonly like?: Like | null
}

/** A model, and what its buffers held after its run. */
export interface Like {
  readonly module: Module | null
  /** The parameters of a function; see {@link Seen}. */
  readonly parameters?: ReadonlyMap<string, Tensor>
  readonly buffers: ReadonlyMap<string, Tensor>
}

/** What a run came to. Nothing here changes afterwards, but for `own`. */
export interface Seen {
  /** The parameters of a function themselves: those of the program. Empty for a module. */
  readonly own: ReadonlyMap<string, Tensor>
  readonly output: unknown
  readonly loss: Tensor | null
  /** Gradients of parameters; zeros for one that gets none. Empty with `onlyFwd`. */
  readonly gradients: ReadonlyMap<string, Tensor>
  readonly parameters: ReadonlyMap<string, Tensor>
  readonly buffers: ReadonlyMap<string, Tensor>
  /** The tensors among the inputs after the run (`input 0`; `input 1[2]` for the third in a nested one). */
  readonly inputs: ReadonlyMap<string, Tensor>
  /** Their gradients. Null with `onlyFwd`, and for one that gets none. */
  readonly inputGradients: ReadonlyMap<string, Tensor | null>
}

/** The module behind something to run: itself, or the one that was compiled; null for a function. */
export function moduleOf(model: Runnable): Module | null {
  const behind: unknown = model instanceof Module ? model : Reflect.get(model, 'module')
  return behind instanceof Module ? behind : null
}

/** The tensors of a module by name, each once: parameters, buffers, and what it holds besides (constants of a graph). */
export interface Named {
  readonly parameters: ReadonlyMap<string, Tensor>
  readonly buffers: ReadonlyMap<string, Tensor>
}

/** The tensors of a module. One that is neither a parameter nor a buffer counts as what it is used as: a parameter if it requires grad. */
export function tensorsOf(module: Module): Named {
  const [parameters, buffers] = [new Map<string, Tensor>(), new Map<string, Tensor>()]
  for (const [name, value] of module.namedParameters()) if (value instanceof Tensor) parameters.set(name, value)
  for (const [name, value] of module.namedBuffers()) if (value instanceof Tensor) buffers.set(name, value)
  const known = new Set([...parameters.values(), ...buffers.values()])
  for (const [path, owner] of module.namedModules())
    for (const [key, value] of Object.entries(owner)) {
      if (!(value instanceof Tensor) || known.has(value)) continue
      known.add(value)
      ;(value.requiresGrad ? parameters : buffers).set(childPath(path, key), value)
    }
  return { parameters, buffers }
}

/** Runs a model once, inside of `contained`, whose `trace` says what it has written to. */
export function observe(model: Runnable, inputs: readonly unknown[], setup: Setup, trace: Trace): Seen {
  const own = isolated(model, inputs)
  const givenInputs = tensorsIn(own.inputs)
  const { moved } = setup
  if (moved !== undefined && own.model instanceof Module) {
    const { parameters, buffers } = tensorsOf(own.model)
    moveInputs(new Set([...parameters.values(), ...buffers.values(), ...givenInputs.values()]), moved)
  }
  const inMode = <T>(fn: () => T): T => (moved === undefined ? fn() : withMode(new Rounding(moved), fn))
  const output: unknown = inMode(() => Reflect.apply(own.model, undefined, own.inputs))
  const loss = setup.onlyFwd ? null : setup.lossOf(output)
  const leaves = leavesBehind(setup.onlyFwd ? treeLeaves(output) : [loss])
  const owned =
    own.model instanceof Module ? tensorsOf(own.model) : tensorsOfFunction(model, setup.like ?? null, leaves, new Set(givenInputs.values()), trace)
  const wanted = [...leaves]
  const grads = loss === null ? [] : inMode(() => grad(loss, wanted, { allowUnused: true }))
  const gradOf = new Map(wanted.map((leaf, i) => [leaf, grads[i] ?? null]))
  // The memory that a function has written to is put back, so what it shows is copied.
  const kept = (value: Tensor): Tensor => (own.model instanceof Module ? value : clone(value))
  const keptDetached = (value: Tensor): Tensor => (own.model instanceof Module ? detach(value) : clone(detach(value)))
  return {
    own: own.model instanceof Module ? new Map() : owned.parameters,
    output: treeMap(output, (leaf) => (leaf instanceof Tensor ? kept(leaf) : leaf)),
    loss,
    gradients: setup.onlyFwd ? new Map() : mapped(owned.parameters, (value) => gradOf.get(value) ?? zerosLike(detach(value))),
    parameters: mapped(owned.parameters, keptDetached),
    buffers: mapped(owned.buffers, keptDetached),
    inputs: mapped(givenInputs, detach),
    inputGradients: mapped(givenInputs, (value) => gradOf.get(value) ?? null),
  }
}

const mapped = <T>(from: ReadonlyMap<string, Tensor>, fn: (value: Tensor) => T): Map<string, T> =>
  new Map([...from].map(([name, value]) => [name, fn(value)]))

function tensorsIn(inputs: readonly unknown[]): Map<string, Tensor> {
  const found = new Map<string, Tensor>()
  for (const [i, input] of inputs.entries())
    treeLeaves(input).forEach((leaf, k) => {
      if (leaf instanceof Tensor) found.set(leaf === input ? `input ${i}` : `input ${i}[${k}]`, leaf)
    })
  return found
}

/** The leaves that gradients of some values arrive at, in the order in which the tape leads to them. */
function leavesBehind(values: readonly unknown[]): ReadonlySet<Tensor> {
  const leaves = new Set<Tensor>()
  const nodes = new Set<GradNode>()
  const visit = (edge: Edge): void => {
    if (edge instanceof GradNode) nodes.add(edge)
    else if (edge !== null) leaves.add(edge)
  }
  for (const value of values) if (value instanceof Tensor && value.requiresGrad) visit(producerOf(value) ?? value)
  // The set grows while it is walked.
  for (const node of nodes) for (const target of node.targets) visit(target)
  return leaves
}

function tensorsOfFunction(model: Runnable, like: Like | null, leaves: ReadonlySet<Tensor>, inputs: ReadonlySet<Tensor>, trace: Trace): Named {
  const module = moduleOf(model) ?? like?.module ?? null
  const ofModule: Named = module === null ? { parameters: new Map(), buffers: new Map() } : tensorsOf(module)
  const known: Named = { ...ofModule, parameters: new Map([...(like?.parameters ?? []), ...ofModule.parameters]) }
  const owned = new Set([...known.parameters.values(), ...known.buffers.values()])
  const foreign = [...leaves].filter((leaf) => !owned.has(leaf) && !inputs.has(leaf))
  const parameters = new Map(known.parameters)
  // A function may hold tensors of its own in the place of the module's: they start from the same values.
  for (const [name, value] of known.parameters) {
    if (leaves.has(value)) continue
    const at = foreign.findIndex((leaf) => sameElements(leaf, value))
    if (at >= 0) for (const leaf of foreign.splice(at, 1)) parameters.set(name, leaf)
  }
  let number = 0
  for (const leaf of foreign) {
    while (parameters.has(`parameter ${number}`)) number++
    parameters.set(`parameter ${number}`, leaf)
  }
  return { parameters, buffers: buffersOfFunction(known.buffers, owned, like?.buffers ?? new Map(), trace) }
}

/**
 * The buffers of a function that has others than the module's: memory that it has written to and that held the same bytes before. If there are several, as the zeros of
 * new statistics, it is the one that holds what the module's buffer does after the run.
 */
function buffersOfFunction(
  known: ReadonlyMap<string, Tensor>,
  owned: ReadonlySet<Tensor>,
  expected: ReadonlyMap<string, Tensor>,
  trace: Trace,
): ReadonlyMap<string, Tensor> {
  const own = new Set([...owned].map(({ storage }) => storage?.home))
  const foreign = [...trace.written()].filter(([storage]) => !own.has(storage.home))
  const buffers = new Map(known)
  for (const [name, value] of known) {
    const { storage } = value
    if (storage === null || trace.hasWritten(storage)) continue
    const bytes = storage.peekBytes()
    const candidates = foreign.filter(([, before]) => bytes !== null && sameBytes(before, bytes))
    const on = ([other]: (typeof foreign)[number]): Tensor => new Tensor(value.sizes, value.dtype, other, value.steps, value.offset, value)
    const wanted = expected.get(name)
    const found = candidates.find((candidate) => wanted !== undefined && sameElements(on(candidate), wanted)) ?? candidates[0]
    if (found === undefined) continue
    foreign.splice(foreign.indexOf(found), 1)
    buffers.set(name, on(found))
  }
  return buffers
}

function sameElements(a: Tensor, b: Tensor): boolean {
  if (a.dtype !== b.dtype || !sameShape(a.shape, b.shape)) return false
  const [x, y] = [exactElements(a), exactElements(b)]
  for (let i = 0; i < x.length; i++) if (!Object.is(x[i], y[i])) return false
  return true
}

/**
 * A run's results under the names of another: a module that wraps the other has its tensors under longer names, or under other names with the same values. `missing` says which have
 * no counterpart.
 */
export function renamed(seen: Seen, like: Seen): { readonly seen: Seen; readonly missing: readonly string[] } {
  const parameters = renaming(seen.parameters, like.parameters)
  const buffers = renaming(seen.buffers, like.buffers)
  const under = <T>(values: ReadonlyMap<string, T>, { names }: Renaming): Map<string, T> =>
    new Map([...values].map(([name, value]) => [names.get(name) ?? name, value]))
  return {
    seen: {
      ...seen,
      parameters: under(seen.parameters, parameters),
      gradients: under(seen.gradients, parameters),
      buffers: under(seen.buffers, buffers),
    },
    missing: [...parameters.missing, ...buffers.missing].map((name) => `'${name}' has no counterpart in the compiled model`),
  }
}

interface Renaming {
  readonly names: ReadonlyMap<string, string>
  readonly missing: readonly string[]
}

function renaming(own: ReadonlyMap<string, Tensor>, like: ReadonlyMap<string, Tensor>): Renaming {
  const extra = new Map([...own].filter(([name]) => !like.has(name)))
  const names = new Map<string, string>()
  const missing: string[] = []
  for (const [name, value] of like) {
    if (own.has(name)) continue
    const candidates = [...extra].filter(([, other]) => other.dtype === value.dtype && sameShape(other.shape, value.shape))
    const [found] = candidates.find(([other]) => other.endsWith(`.${name}`)) ?? candidates.find(([, other]) => sameElements(other, value)) ?? []
    if (found === undefined) missing.push(name)
    else {
      names.set(found, name)
      extra.delete(found)
    }
  }
  return { names, missing }
}
