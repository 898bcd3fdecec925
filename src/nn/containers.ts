// Modules that hold other modules: Sequential, ModuleList, ModuleDict. A tracer looks into them.
import { ArgumentError, InternalError, UnsupportedError } from '../errors/index.ts'
import { Module } from '../module/index.ts'
import { checkArgument, checkCount, checkIterable, checkMethod, checkString, isFunction, isModule, isObject, valueText } from '../protocol/index.ts'
import type { Tensor } from '../tensor/index.ts'

type Named = Readonly<Record<string, Module>> | ReadonlyMap<string, Module>

/** `instanceof` does not narrow the union to ReadonlyMap. */
const isMap = (named: Named): named is ReadonlyMap<string, Module> => named instanceof Map

function entriesOf(where: string, named: Named): Iterable<readonly [string, Module]> {
  checkArgument(isObject(named), where, 'modules', 'an object or a Map of Modules by name', named)
  return isMap(named) ? named : Object.entries(named)
}

function addChild(where: string, owner: Module, name: string, child: unknown): void {
  if (!(child instanceof Module)) {
    const text = valueText(child)
    const hint = text.startsWith('the class')
      ? ` Make one: ${text.replace('the class', 'new')}(…).`
      : isFunction(child)
        ? ' Functions have modules too: nn.ReLU for relu.'
        : ''
    throw new ArgumentError(`${where}: '${name}' must be a Module, got ${text}.${hint}`)
  }
  const taken: unknown = name in owner ? Reflect.get(owner, name) : undefined
  if (taken !== undefined && !(taken instanceof Module))
    throw new ArgumentError(`${where}: the name '${name}' is taken by a property of ${owner.constructor.name}; choose another one.`)
  owner.addModule(name, child)
}

function wrapIndex(where: string, index: number, length: number): number {
  const wrapped = Number.isInteger(index) && index < 0 ? index + length : index
  if (!Number.isInteger(wrapped) || wrapped < 0 || wrapped >= length)
    throw new ArgumentError(`${where}: index ${valueText(index)} is out of range for ${length} module(s).`)
  return wrapped
}

/** The item at an index; negative counts from the end. Throws ArgumentError out of range. */
function itemAt<T>(where: string, items: readonly T[], index: number): T {
  const item = items[wrapIndex(where, index, items.length)]
  if (item === undefined) throw new InternalError(`${where}: there is no item at ${index}`)
  return item
}

/** Modules by name; a module is a function, not a table. */
const isNamed = (value: unknown): value is Named => isObject(value) && !isModule(value)

const count = (owner: Module): number => [...owner.namedChildren()].length

/**
 * Runs its modules one after the other: `new Sequential(a, b)` names them 0, 1, …; `new Sequential({ conv: a, relu: b })` by the keys.
 * Iterable. PyTorch's `nn.Sequential`.
 */
export class Sequential extends Module {
  constructor(...modules: readonly Module[] | readonly [Named]) {
    super()
    const [first] = modules
    const named =
      modules.length === 1 && isNamed(first) ? entriesOf('nn.Sequential', first) : modules.map((module, i) => [String(i), module] as const)
    for (const [name, module] of named) addChild('nn.Sequential', this, name, module)
  }

  /** Number of modules. */
  override get length(): number {
    return count(this)
  }

  /** The module at a position; negative counts from the end. Throws ArgumentError out of range. */
  at(index: number): Module {
    checkMethod(this, 'at', arguments, 1)
    return itemAt('nn.Sequential.at', [...this.children()], index)
  }

  /** Adds a module at the end; returns this. */
  append(module: Module): this {
    checkMethod(this, 'append', arguments, 1)
    addChild('nn.Sequential.append', this, String(this.length), module)
    return this
  }

  [Symbol.iterator](): IterableIterator<Module> {
    return this.children()
  }

  override forward(input: Tensor): Tensor {
    checkCount(this, arguments, 1)
    let value: unknown = input
    for (const module of this.children()) value = Reflect.apply(module, undefined, [value])
    return value as Tensor
  }
}

/** Modules in an array, so that they are registered: `for (const layer of this.layers) x = layer(x)`. PyTorch's `nn.ModuleList`. */
export class ModuleList<M extends Module = Module> extends Module {
  constructor(modules: Iterable<M> = []) {
    checkCount('nn.ModuleList', arguments, 1)
    super()
    this.extend(modules)
  }

  /** Number of modules. */
  override get length(): number {
    return count(this)
  }

  /** The module at a position; negative counts from the end. Throws ArgumentError out of range. */
  at(index: number): M {
    checkMethod(this, 'at', arguments, 1)
    return itemAt('nn.ModuleList.at', [...this], index)
  }

  /** Replaces the module at a position. */
  set(index: number, module: M): void {
    checkMethod(this, 'set', arguments, 2)
    addChild('nn.ModuleList.set', this, String(wrapIndex('nn.ModuleList.set', index, this.length)), module)
  }

  /** Adds a module at the end; returns this. */
  append(module: M): this {
    checkMethod(this, 'append', arguments, 1)
    addChild('nn.ModuleList.append', this, String(this.length), module)
    return this
  }

  /** Adds modules at the end; returns this. */
  extend(modules: Iterable<M>): this {
    checkMethod(this, 'extend', arguments, 1)
    checkIterable('nn.ModuleList', 'modules', modules)
    for (const module of modules) this.append(module)
    return this
  }

  /** Adds a module before `index`; returns this. Throws ArgumentError if there is no such place. */
  insert(index: number, module: M): this {
    checkMethod(this, 'insert', arguments, 2)
    const rest = [...this]
    if (!Number.isInteger(index) || Math.abs(index) > rest.length)
      throw new ArgumentError(`nn.ModuleList.insert: index ${valueText(index)} is out of range for ${rest.length} module(s).`)
    rest.splice(index, 0, module)
    rest.forEach((m, i) => addChild('nn.ModuleList.insert', this, String(i), m))
    return this
  }

  [Symbol.iterator](): IterableIterator<M> {
    return this.children() as IterableIterator<M>
  }

  override forward(): never {
    throw new UnsupportedError('nn.ModuleList has no forward: call its modules one by one, or use nn.Sequential.')
  }

  /** As PyTorch: runs of equal modules are printed once, `(0-2): 3 x Linear(…)`. */
  override toString(): string {
    const runs: { from: number; to: number; text: string }[] = []
    for (const [i, module] of [...this].entries()) {
      const text = String(module)
      const last = runs.at(-1)
      if (last?.text === text) last.to = i
      else runs.push({ from: i, to: i, text })
    }
    if (runs.length === 0) return `${this.getName()}()`
    const lines = runs.map(({ from, to, text }) =>
      (from === to ? `(${from}): ${text}` : `(${from}-${to}): ${to - from + 1} x ${text}`).replaceAll('\n', '\n  '),
    )
    return `${this.getName()}(\n  ${lines.join('\n  ')}\n)`
  }
}

/** Modules by name, so that they are registered. A name must not be that of one of its methods. PyTorch's `nn.ModuleDict`. */
export class ModuleDict<M extends Module = Module> extends Module {
  constructor(modules: Readonly<Record<string, M>> | ReadonlyMap<string, M> = {}) {
    checkCount('nn.ModuleDict', arguments, 1)
    super()
    this.update(modules)
  }

  /** Number of modules. */
  get size(): number {
    return count(this)
  }

  /** The module of that name. Throws ArgumentError listing the names when there is none. */
  get(name: string): M {
    checkMethod(this, 'get', arguments, 1)
    for (const [own, module] of this.entries()) if (own === name) return module
    throw new ArgumentError(`nn.ModuleDict.get: there is no module ${valueText(name)}. The modules are ${[...this.keys()].join(', ')}.`)
  }

  has(name: string): boolean {
    checkMethod(this, 'has', arguments, 1)
    checkString('nn.ModuleDict', 'name', name)
    return Object.hasOwn(this, name) && Reflect.get(this, name) instanceof Module
  }

  /** Adds or replaces a module; returns this. */
  set(name: string, module: M): this {
    checkMethod(this, 'set', arguments, 2)
    checkString('nn.ModuleDict', 'name', name)
    addChild('nn.ModuleDict.set', this, name, module)
    return this
  }

  /** Removes a module; false when there was none. */
  delete(name: string): boolean {
    checkMethod(this, 'delete', arguments, 1)
    return this.has(name) && Reflect.deleteProperty(this, name)
  }

  /** Adds or replaces modules; returns this. */
  update(modules: Readonly<Record<string, M>> | ReadonlyMap<string, M>): this {
    checkMethod(this, 'update', arguments, 1)
    for (const [name, module] of entriesOf('nn.ModuleDict', modules)) addChild('nn.ModuleDict', this, name, module)
    return this
  }

  *keys(): Generator<string> {
    for (const [name] of this.namedChildren()) yield name
  }

  *values(): Generator<M> {
    for (const [, module] of this.entries()) yield module
  }

  entries(): IterableIterator<[string, M]> {
    checkMethod(this, 'entries', arguments, 0)
    return this.namedChildren() as IterableIterator<[string, M]>
  }

  [Symbol.iterator](): IterableIterator<string> {
    return this.keys()
  }

  override forward(): never {
    throw new UnsupportedError('nn.ModuleDict has no forward: call the module that you need, `this.layers.get(name)(x)`.')
  }
}
