// Module: a tree of children, parameters and buffers by name, with hooks, train/eval and state dict. It knows no operators, so that a GraphModule
// can be one and fx stays a leaf. Children and parameters are ordinary properties: `this.fc = new Linear(4, 5)`.
import { ArgumentError } from '../errors/index.ts'
import { STANDS_FOR, inspectAs, isParameter, isTensorLike } from '../protocol/index.ts'
import type { TensorLike } from '../protocol/index.ts'
import { collectState, loadState } from './stateDict.ts'

export interface RemovableHandle {
  remove(): void
}

/** Runs before forward; an array that it returns replaces the arguments. */
export type ForwardPreHook = (module: Module, args: readonly unknown[]) => readonly unknown[] | void
/** Runs after forward; a value that it returns (not undefined) replaces the output. */
export type ForwardHook = (module: Module, args: readonly unknown[], output: unknown) => unknown

/** How a tracer sees module calls; see {@link setModuleTracingHook}. */
export interface ModuleTracingHook {
  callModule(module: Module, forward: (...args: readonly unknown[]) => unknown, args: readonly unknown[]): unknown
}

let tracing: ModuleTracingHook | null = null

/** Sends every module call through `hook` until it is set back; returns the former hook. For tracers. */
export function setModuleTracingHook(hook: ModuleTracingHook | null): ModuleTracingHook | null {
  const before = tracing
  tracing = hook
  return before
}

interface Internals {
  readonly buffers: Map<string, boolean>
  readonly preHooks: Set<ForwardPreHook>
  readonly hooks: Set<ForwardHook>
}

const internals = new WeakMap<Module, Internals>()

function internalsOf(module: Module): Internals {
  let own = internals.get(module)
  if (own === undefined) {
    own = { buffers: new Map(), preHooks: new Set(), hooks: new Set() }
    internals.set(module, own)
  }
  return own
}

/** Base class of all layers and models; PyTorch's torch.nn.Module. Subclasses define `forward`; users run a module with `call`. */
export abstract class Module {
  /** Whether layers such as dropout behave as in training. Set it with `train()` and `eval()`. */
  training = true

  /** Computes the module's output. */
  abstract forward(...args: never[]): unknown

  /** Runs the module: hooks, then forward. PyTorch's `module(x)`. */
  call(...args: Parameters<this['forward']>): ReturnType<this['forward']> {
    const forward = (...inputs: readonly unknown[]): unknown => (this.forward as (...a: readonly unknown[]) => unknown)(...inputs)
    const own = internals.get(this)
    const run = own === undefined || (own.preHooks.size === 0 && own.hooks.size === 0) ? forward : this.#withHooks(own, forward)
    return (tracing === null ? run(...args) : tracing.callModule(this, run, args)) as ReturnType<this['forward']>
  }

  #withHooks(own: Internals, forward: (...args: readonly unknown[]) => unknown): (...args: readonly unknown[]) => unknown {
    return (...given) => {
      let args: readonly unknown[] = given
      for (const hook of own.preHooks) args = hook(this, args) ?? args
      let output = forward(...args)
      for (const hook of own.hooks) {
        const replaced = hook(this, args, output)
        if (replaced !== undefined) output = replaced
      }
      return output
    }
  }

  registerForwardPreHook(hook: ForwardPreHook): RemovableHandle {
    internalsOf(this).preHooks.add(hook)
    return { remove: () => void internalsOf(this).preHooks.delete(hook) }
  }

  registerForwardHook(hook: ForwardHook): RemovableHandle {
    internalsOf(this).hooks.add(hook)
    return { remove: () => void internalsOf(this).hooks.delete(hook) }
  }

  /** A tensor that belongs to the module's state but is not trained. `persistent: false` keeps it out of the state dict. */
  registerBuffer(name: string, tensor: TensorLike | null, options: { readonly persistent?: boolean } = {}): void {
    checkName('registerBuffer', name)
    if (tensor !== null && !isTensorLike(tensor)) throw new ArgumentError(`registerBuffer: '${name}' must be a Tensor or null.`)
    internalsOf(this).buffers.set(name, options.persistent ?? true)
    ;(this as unknown as Record<string, unknown>)[name] = tensor
  }

  /** Adds a parameter under a name that is only known at run time; otherwise assign a property. */
  registerParameter(name: string, parameter: TensorLike | null): void {
    checkName('registerParameter', name)
    if (parameter !== null && !isParameter(parameter)) throw new ArgumentError(`registerParameter: '${name}' must be a Parameter or null.`)
    ;(this as unknown as Record<string, unknown>)[name] = parameter
  }

  /** Adds a child under a name that is only known at run time; otherwise assign a property. PyTorch's add_module. */
  addModule(name: string, module: Module): void {
    checkName('addModule', name)
    if (!(module instanceof Module)) throw new ArgumentError(`addModule: '${name}' must be a Module.`)
    ;(this as unknown as Record<string, unknown>)[name] = module
  }

  /** Direct children by name. */
  *namedChildren(): Generator<[string, Module]> {
    for (const [name, value] of ownEntries(this)) if (value instanceof Module) yield [name, value]
  }

  *children(): Generator<Module> {
    for (const [, child] of this.namedChildren()) yield child
  }

  /** This module and all below it, each once, with dotted paths ('' for this one). */
  *namedModules(prefix = '', seen: Set<Module> = new Set()): Generator<[string, Module]> {
    if (seen.has(this)) return
    seen.add(this)
    yield [prefix, this]
    for (const [name, child] of this.namedChildren()) yield* child.namedModules(prefix === '' ? name : `${prefix}.${name}`, seen)
  }

  *modules(): Generator<Module> {
    for (const [, module] of this.namedModules()) yield module
  }

  /** Own parameters, not those of children. */
  *ownParameters(): Generator<[string, TensorLike]> {
    for (const [name, value] of ownEntries(this)) if (isParameter(value)) yield [name, read(this, name) as TensorLike]
  }

  /** Whether a buffer is registered under that name, here and not in a child. */
  hasBuffer(name: string): boolean {
    return internals.get(this)?.buffers.has(name) === true
  }

  /** Own buffers, not those of children, with whether they are persistent. */
  *ownBuffers(): Generator<[string, TensorLike, boolean]> {
    for (const [name, persistent] of internals.get(this)?.buffers ?? []) {
      if (isTensorLike(peek(this, name))) yield [name, read(this, name) as TensorLike, persistent]
    }
  }

  /** All parameters with dotted names; a shared one comes once, under its first name. */
  *namedParameters(): Generator<[string, TensorLike]> {
    const seen = new Set<unknown>()
    for (const [path, module] of this.namedModules()) {
      for (const [name, value] of module.ownParameters()) {
        if (seen.has(value)) continue
        seen.add(value)
        yield [path === '' ? name : `${path}.${name}`, value]
      }
    }
  }

  *parameters(): Generator<TensorLike> {
    for (const [, parameter] of this.namedParameters()) yield parameter
  }

  *namedBuffers(): Generator<[string, TensorLike]> {
    const seen = new Set<unknown>()
    for (const [path, module] of this.namedModules()) {
      for (const [name, value] of module.ownBuffers()) {
        if (seen.has(value)) continue
        seen.add(value)
        yield [path === '' ? name : `${path}.${name}`, value]
      }
    }
  }

  *buffers(): Generator<TensorLike> {
    for (const [, buffer] of this.namedBuffers()) yield buffer
  }

  /** The module at a dotted path. Throws ArgumentError naming the first part that is missing. */
  getSubmodule(path: string): Module {
    if (path === '') return this
    let module: Module = this
    for (const part of path.split('.')) {
      const next = (module as unknown as Record<string, unknown>)[part]
      if (!(next instanceof Module))
        throw new ArgumentError(`getSubmodule: ${module.constructor.name} has no child '${part}' (looking for '${path}').`)
      module = next
    }
    return module
  }

  getParameter(path: string): TensorLike {
    const [owner, name] = this.#place(path)
    if (!isParameter(peek(owner, name))) throw new ArgumentError(`getParameter: '${path}' is not a parameter of ${this.constructor.name}.`)
    return read(owner, name) as TensorLike
  }

  getBuffer(path: string): TensorLike {
    const [owner, name] = this.#place(path)
    const value = peek(owner, name)
    if (!isTensorLike(value) || value.isParameter) throw new ArgumentError(`getBuffer: '${path}' is not a buffer of ${this.constructor.name}.`)
    return read(owner, name) as TensorLike
  }

  #place(path: string): [Module, string] {
    const dot = path.lastIndexOf('.')
    return [this.getSubmodule(dot < 0 ? '' : path.slice(0, dot)), path.slice(dot + 1)]
  }

  /** Sets training mode here and below. */
  train(mode = true): this {
    for (const module of this.modules()) module.training = mode
    return this
  }

  eval(): this {
    return this.train(false)
  }

  requiresGrad_(value = true): this {
    for (const parameter of this.parameters()) parameter.requiresGrad = value
    return this
  }

  /** Forgets the gradients of all parameters. */
  zeroGrad(): void {
    for (const parameter of this.parameters()) parameter.grad = null
  }

  /** Calls `fn` on every module, children first. */
  apply(fn: (module: Module) => void): this {
    for (const child of this.children()) child.apply(fn)
    fn(this)
    return this
  }

  /** Parameters and persistent buffers by dotted name: the tensors themselves, not copies. */
  stateDict(): Map<string, TensorLike> {
    return collectState(this)
  }

  /**
   * Copies values into this module's parameters and buffers. Throws LoadStateError listing missing and unexpected names and shape
   * mismatches; then nothing has changed. `strict: false` accepts missing and unexpected names.
   */
  loadStateDict(state: ReadonlyMap<string, TensorLike> | Readonly<Record<string, TensorLike>>, options: { readonly strict?: boolean } = {}): void {
    loadState(this, state, options.strict ?? true)
  }

  /** What stands between the parentheses of `toString`; layers override it. */
  extraRepr(): string {
    return ''
  }

  /** The class name that `toString` shows. PyTorch's _get_name. */
  getName(): string {
    return this.constructor.name
  }

  toString(): string {
    const extra = this.extraRepr()
    const children = [...this.namedChildren()].map(([name, child]) => `(${name}): ${String(child).replaceAll('\n', '\n  ')}`)
    const name = this.getName()
    if (children.length === 0) return `${name}(${extra})`
    return `${name}(\n  ${[...(extra === '' ? [] : [extra]), ...children].join('\n  ')}\n)`
  }
}

inspectAs(Module.prototype, String)

function checkName(where: string, name: string): void {
  if (name === '' || name.includes('.')) throw new ArgumentError(`${where}: the name '${name}' must not be empty or contain a dot.`)
}

/** What a property gives; of a module that is being traced, a traced value. */
const read = (module: Module, name: string): unknown => (module as unknown as Record<string, unknown>)[name]

/** A property's own value, also where a tracer stands before it, which is not asked. */
function peek(module: Module, name: string): unknown {
  if (tracing === null) return read(module, name)
  const descriptor = Object.getOwnPropertyDescriptor(module, name)
  return descriptor?.get === undefined ? descriptor?.value : (descriptor.get as { readonly [STANDS_FOR]?: unknown })[STANDS_FOR]
}

/** Own properties in order. */
function ownEntries(module: Module): [string, unknown][] {
  if (tracing === null) return Object.entries(module)
  return Object.keys(module).map((name) => [name, peek(module, name)])
}

function copyInternals(from: Module, to: Module): void {
  const own = internals.get(from)
  if (own !== undefined) internals.set(to, { buffers: new Map(own.buffers), preHooks: new Set(own.preHooks), hooks: new Set(own.hooks) })
}

/** A module that copies itself: it holds more than its properties. */
export interface SelfCloning {
  cloneWith(copy: (value: unknown) => unknown): Module
}

const hasCloneWith = (value: object): value is Module & SelfCloning => typeof (value as Partial<SelfCloning>).cloneWith === 'function'

/**
 * A copy of a module tree. Modules are copied once each (sharing is kept), tensors by `copyTensor`, other values: plain arrays and objects
 * are copied, anything else is shared. Hooks and buffer registrations are kept. PyTorch's copy.deepcopy.
 */
export function cloneModule<M extends Module>(module: M, copyTensor: (tensor: TensorLike) => TensorLike): M {
  const seen = new Map<unknown, unknown>()
  const copy = (value: unknown): unknown => {
    if (typeof value !== 'object' || value === null) return value
    if (seen.has(value)) return seen.get(value)
    if (isTensorLike(value)) {
      const made = copyTensor(value)
      seen.set(value, made)
      return made
    }
    if (value instanceof Module && hasCloneWith(value)) {
      const made = value.cloneWith(copy)
      seen.set(value, made)
      copyInternals(value, made)
      return made
    }
    if (value instanceof Module) {
      const made = Object.create(Object.getPrototypeOf(value) as object) as Module
      seen.set(value, made)
      for (const [key, item] of Object.entries(value)) (made as unknown as Record<string, unknown>)[key] = copy(item)
      copyInternals(value, made)
      return made
    }
    if (Array.isArray(value)) {
      const made: unknown[] = []
      seen.set(value, made)
      for (const item of value) made.push(copy(item))
      return made
    }
    if (Object.getPrototypeOf(value) === Object.prototype) {
      const made: Record<string, unknown> = {}
      seen.set(value, made)
      for (const [key, item] of Object.entries(value)) made[key] = copy(item)
      return made
    }
    return value
  }
  return copy(module) as M
}
