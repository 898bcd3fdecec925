// Functions chosen by patterns: the most specific signature that unifies with the arguments. PyTorch's torch.fx.experimental.unification.match.
import { ArgumentError } from '../../../errors/index.ts'
import { isFunction, isPlainObject, valueText } from '../../../protocol/index.ts'
import type { TargetFunction } from '../../../protocol/index.ts'
import { CallableObject } from '../../../module/callable.ts'
import { pyRepr } from '../../text/format.ts'
import { markTuple } from '../../graph/pythonValues.ts'
import { reify, unify } from './core.ts'
import type { Substitution } from './core.ts'
import { freeze, toposort } from './utils.ts'
import { isVar, isvar } from './variable.ts'

/** The pattern of a call: constants, variables, and arrays of them. */
export type Pattern = readonly unknown[]

interface Implementation {
  readonly signature: Pattern
  readonly fn: TargetFunction
}

/** Whether two signatures are the same term. */
function same(a: unknown, b: unknown): boolean {
  const needed = unify(a, b)
  return needed !== false && needed.size === 0
}

/**
 * Calls the function whose signature unifies with the arguments, the most specific one first. An object that can be called. PyTorch's match.Dispatcher.
 *
 *     const size = new Dispatcher('size')
 *     size.add([0], () => 'zero')
 *     size.add([Var('x')], (x) => `${x}`)
 *     size.call(0)  // 'zero'
 */
export class Dispatcher extends CallableObject {
  readonly name: string
  #implementations: Implementation[] = []
  #ordering: readonly Pattern[] | null = null

  constructor(name: string) {
    super()
    this.name = name
  }

  /** Adds a function; it replaces one with the same signature. */
  add(signature: Pattern, fn: TargetFunction): void {
    const frozen = markTuple(signature.map(freeze))
    this.#implementations = [...this.#implementations.filter((known) => !same(known.signature, frozen)), { signature: frozen, fn }]
    this.#ordering = null
  }

  /** A function that adds its argument with this signature and returns the dispatcher. */
  register(...signature: Pattern): (fn: TargetFunction) => this {
    return (fn) => {
      this.add(signature, fn)
      return this
    }
  }

  /** The signatures in the order in which they are tried. */
  get ordering(): readonly Pattern[] {
    return (this.#ordering ??= ordering(this.#implementations.map(({ signature }) => signature)))
  }

  /**
   * The function for these arguments, and the values of the signature's variables.
   * @throws ArgumentError if no signature unifies with them.
   */
  resolve(args: readonly unknown[]): readonly [fn: TargetFunction, values: Substitution] {
    const given = freeze(args)
    for (const signature of this.ordering) {
      if (signature.length !== args.length) continue
      const values = unify(given, signature)
      const found = values === false ? undefined : this.#implementations.find((known) => known.signature === signature)
      if (found !== undefined && values !== false) return [found.fn, values]
    }
    throw new ArgumentError(`No match found. \nKnown matches: ${pyRepr(this.ordering)}\nInput: ${pyRepr(markTuple([...args]))}`)
  }

  call(...args: readonly unknown[]): unknown {
    const [fn] = this.resolve(args)
    return fn(...args)
  }
}

/**
 * A {@link Dispatcher} whose functions get one object: the values of the signature's variables, by their tokens. PyTorch's VarDispatcher, which passes them by name.
 *
 *     const d = new VarDispatcher('d')
 *     d.add(['inc', Var('x')], ({ x }) => x + 1)
 *     d.call('inc', 10)  // 11
 */
export class VarDispatcher extends Dispatcher {
  override call(...args: readonly unknown[]): unknown {
    const [fn, values] = this.resolve(args)
    return fn(Object.fromEntries([...values].map(([key, value]) => [isVar(key) ? String(key.token) : String(key), value])))
  }
}

/** Dispatchers by the names of their functions. */
export type MatchNamespace = Record<string, Dispatcher>

/** Options of {@link match}. */
export interface MatchOptions {
  /** Where the dispatchers are kept. Default: one place for the whole program. */
  readonly namespace?: MatchNamespace
  /** The name of the dispatcher. Default: that of the function, which minifiers change. */
  readonly name?: string
  /** The class of new dispatchers. Default {@link Dispatcher}. */
  readonly Dispatcher?: new (name: string) => Dispatcher
}

const globalNamespace: MatchNamespace = {}

const OPTIONS: ReadonlySet<string> = new Set(['namespace', 'name', 'Dispatcher'])
const isOptions = (value: unknown): value is MatchOptions =>
  isPlainObject(value) && Object.keys(value).length > 0 && Object.keys(value).every((key) => OPTIONS.has(key))

/**
 * A function that adds a named function, under its name, to a namespace with this signature, and returns the dispatcher of that name. The last argument may be
 * {@link MatchOptions}. PyTorch's match.
 *
 *     const f = match(0, { namespace })(function f() { return 'zero' })
 *
 * @throws ArgumentError for a function without a name, if the options have none.
 */
export function match(...given: readonly unknown[]): (fn: TargetFunction) => Dispatcher {
  const last = given.at(-1)
  const options = isOptions(last) ? last : {}
  const signature = isOptions(last) ? given.slice(0, -1) : given
  const namespace = options.namespace ?? globalNamespace
  return (fn) => {
    if (!isFunction(fn)) throw new ArgumentError(`match: expected a function, got ${valueText(fn)}.`)
    const name = options.name ?? fn.name
    if (name === '') throw new ArgumentError("match: the function has no name; give one: match(pattern, { name: 'f' })((x) => …).")
    const dispatcher = (namespace[name] ??= new (options.Dispatcher ?? Dispatcher)(name))
    dispatcher.add(signature, fn)
    return dispatcher
  }
}

/** Whether pattern `a` is at least as specific as `b`: it is an instance of it. PyTorch's supercedes. */
export function supercedes(a: unknown, b: unknown): boolean {
  if (isvar(b) && !isvar(a)) return true
  const values = unify(a, b)
  if (values === false) return false
  const constants = new Map([...values].filter(([key, value]) => !isvar(key) || !isvar(value)))
  return same(reify(a, constants), a)
}

/** The signatures, those that are more specific first, otherwise as given. PyTorch's ordering, which breaks ties by hash. */
export function ordering(signatures: readonly Pattern[]): Pattern[] {
  const before = (a: Pattern, i: number, b: Pattern, j: number): boolean => i !== j && supercedes(a, b) && (!supercedes(b, a) || i < j)
  return toposort(new Map(signatures.map((a, i) => [a, signatures.filter((b, j) => before(a, i, b, j))])))
}
