// Functions chosen by the classes of all arguments. PyTorch's torch.fx.experimental.unification.multipledispatch.dispatcher.
import { ArgumentError, UnsupportedError } from '../../../../errors/index.ts'
import { valueText } from '../../../../protocol/index.ts'
import type { TargetFunction } from '../../../../protocol/index.ts'
import { CallableObject } from '../../../../module/callable.ts'
import { isTuple } from '../../../graph/pythonValues.ts'
import { ambiguities, ordering, superSignature } from './conflict.ts'
import type { Signature } from './conflict.ts'
import { expandTuples } from './utils.ts'
import { Variadic, isSubclass, isTypeClass, isvariadic, typeOf } from './variadic.ts'
import type { ArgumentType, TypeClass } from './variadic.ts'

/** An implementation throws it to leave the call to the next one that fits. PyTorch's MDNotImplementedError. */
export class MDNotImplementedError extends UnsupportedError {
  constructor(message = 'This implementation does not take these arguments; the dispatcher tries the next one.') {
    super(message)
  }
}

/** The type of an argument in {@link Dispatcher.add}: a class, a tuple of classes (`fx.tuple(Number, String)`) for one of several, or an array of one type, last, for any number. */
export type GivenType = TypeClass | readonly GivenType[]

/** `Number, String`. PyTorch's str_signature. */
export const strSignature = (signature: Signature): string => signature.map((type) => type.name).join(', ')

/** The text of the warning about ambiguous signatures. PyTorch's warning_text. */
export function warningText(name: string, pairs: readonly (readonly [Signature, Signature])[]): string {
  const lines = pairs.map((pair) => `\t${pair.map((signature) => `[${strSignature(signature)}]`).join(', ')}\n`)
  const additions = pairs.map((pair) => `${name}.add([${strSignature(superSignature(pair))}], …)`)
  return `\nAmbiguities exist in dispatched function ${name}\n\nThe following signatures may result in ambiguous behavior:\n${lines.join('')}\n\nConsider making the following additions:\n\n${additions.join('\n\n')}`
}

/** Whether classes of arguments fit a signature whose last type is variadic. PyTorch's variadic_signature_matches. */
export function variadicSignatureMatches(types: readonly TypeClass[], signature: Signature): boolean {
  const last = signature.at(-1)
  if (!isvariadic(last)) throw new ArgumentError(`variadicSignatureMatches: the last type must be variadic, got <${strSignature(signature)}>.`)
  return types.length >= signature.length - 1 && types.every((type, i) => isSubclass(type, signature[Math.min(i, signature.length - 1)] ?? last))
}

interface Implementation {
  readonly signature: Signature
  readonly fn: TargetFunction
  readonly doc: string | null
}

const sameSignature = (a: Signature, b: Signature): boolean =>
  a.length === b.length &&
  a.every((type, i) => {
    const other = b[i]
    return type === other || (isvariadic(type) && isvariadic(other) && type.name === other.name && type.types.every((t, j) => t === other.types[j]))
  })

const givenName = (type: unknown): string => {
  if (Array.isArray(type)) return isTuple(type) ? `(${type.map(givenName).join(', ')})` : `[${type.map(givenName).join(', ')}]`
  return isTypeClass(type) ? type.name : String(type)
}

/**
 * Calls the implementation whose signature fits the classes of the arguments, the most specific one first. An object that can be called. PyTorch's Dispatcher.
 *
 *     const size = new Dispatcher('size')
 *     size.add([Number], (x) => 'a number')
 *     size.add([Array, Object], (x, y) => 'an array and something')
 *     size.call(3)  // 'a number'
 */
export class Dispatcher extends CallableObject {
  readonly name: string
  readonly doc: string | null
  #implementations: Implementation[] = []
  #ordering: readonly Signature[] | null = null
  #cache: { readonly types: readonly TypeClass[]; readonly fn: TargetFunction }[] = []

  constructor(name: string, doc: string | null = null) {
    super()
    this.name = name
    this.doc = doc
  }

  /** Adds an implementation; it replaces one with the same signature. `doc` is shown by {@link help}. @throws ArgumentError for a signature with anything but types. */
  add(signature: readonly GivenType[], fn: TargetFunction, doc: string | null = null): void {
    for (const types of expandTuples(signature)) {
      const checked = types.map((type, i) => this.#checked(type, i, types))
      const others = this.#implementations.filter((known) => !sameSignature(known.signature, checked))
      this.#implementations = [...others, { signature: checked, fn, doc }]
    }
    this.#ordering = null
    this.#cache = []
  }

  /** A function that adds its argument with this signature and returns it. */
  register(...signature: readonly GivenType[]): <F extends TargetFunction>(fn: F, doc?: string) => F {
    return (fn, doc) => {
      this.add(signature, fn, doc ?? null)
      return fn
    }
  }

  #checked(type: unknown, index: number, signature: readonly unknown[]): ArgumentType {
    if (Array.isArray(type) && !isTuple(type)) {
      if (index !== signature.length - 1) throw new ArgumentError('Variadic signature must be the last element')
      const choices = expandTuples(type)
      if (type.length === 1) return Variadic(...choices.map(([choice]) => this.#classOf(choice, signature)))
      throw new ArgumentError(
        'Variadic signature must contain exactly one element. To use a variadic union type place the desired types inside of a tuple, e.g., [fx.tuple(Number, String)]',
      )
    }
    return this.#classOf(type, signature)
  }

  #classOf(type: unknown, signature: readonly unknown[]): TypeClass {
    if (isTypeClass(type)) return type
    throw new ArgumentError(
      `Tried to dispatch on non-type: ${String(type)}\nIn signature: <${signature.map(givenName).join(', ')}>\nIn function: ${this.name}`,
    )
  }

  /** The signatures in the order in which they are tried. Warns of ambiguous ones. */
  get ordering(): readonly Signature[] {
    return this.#ordering ?? this.reorder()
  }

  /** Puts the signatures in order; `onAmbiguity` gets the pairs between which no order decides. By default they are printed as a warning. PyTorch's reorder. */
  reorder(onAmbiguity: (dispatcher: Dispatcher, pairs: readonly (readonly [Signature, Signature])[]) => void = ambiguityWarn): readonly Signature[] {
    const signatures = this.#implementations.map(({ signature }) => signature)
    const order = (this.#ordering = ordering(signatures))
    const pairs = ambiguities(signatures)
    if (pairs.length > 0) onAmbiguity(this, pairs)
    return order
  }

  /** The implementation for arguments of these classes; null if there is none. */
  dispatch(...types: readonly TypeClass[]): TargetFunction | null {
    const exact = this.#implementations.find(({ signature }) => sameSignature(signature, types))
    if (exact !== undefined) return exact.fn
    for (const fn of this.dispatchIter(...types)) return fn
    return null
  }

  /** All implementations for arguments of these classes, the most specific first. PyTorch's dispatch_iter. */
  *dispatchIter(...types: readonly TypeClass[]): Generator<TargetFunction> {
    for (const { fn } of this.#fitting(types)) yield fn
  }

  *#fitting(types: readonly TypeClass[]): Generator<Implementation> {
    for (const signature of this.ordering) {
      const fits = isvariadic(signature.at(-1))
        ? variadicSignatureMatches(types, signature)
        : types.length === signature.length && types.every((type, i) => isSubclass(type, signature[i] ?? Object))
      const found = fits ? this.#implementations.find((known) => known.signature === signature) : undefined
      if (found !== undefined) yield found
    }
  }

  /** @deprecated PyTorch's old name of {@link dispatch}. */
  resolve(types: readonly TypeClass[]): TargetFunction | null {
    console.warn('FutureWarning: `resolve()` is deprecated, use `dispatch(*types)`')
    return this.dispatch(...types)
  }

  call(...args: readonly unknown[]): unknown {
    return this.callOn(undefined, args)
  }

  /** Calls the implementation with `this`. @throws ArgumentError if none fits, UnsupportedError if all that fit threw {@link MDNotImplementedError}. */
  callOn(receiver: unknown, args: readonly unknown[]): unknown {
    const types = args.map(typeOf)
    try {
      return Reflect.apply(this.#first(types), receiver, args)
    } catch (error) {
      if (!(error instanceof MDNotImplementedError)) throw error
      for (const [i, fn] of [...this.dispatchIter(...types)].entries()) {
        if (i === 0) continue
        try {
          return Reflect.apply(fn, receiver, args)
        } catch (next) {
          if (!(next instanceof MDNotImplementedError)) throw next
        }
      }
      throw new UnsupportedError(`Matching functions for ${this.name}: <${strSignature(types)}> found, but none completed successfully`, {
        cause: error,
      })
    }
  }

  #first(types: readonly TypeClass[]): TargetFunction {
    const cached = this.#cache.find((entry) => sameSignature(entry.types, types))
    if (cached !== undefined) return cached.fn
    const fn = this.dispatch(...types)
    if (fn === null) throw new ArgumentError(`Could not find signature for ${this.name}: <${strSignature(types)}>`)
    this.#cache.push({ types, fn })
    return fn
  }

  /**
   * The dispatcher as a method, which passes `this` on: `K.prototype.m = m.asMethod()`. PyTorch's MethodDispatcher.
   */
  asMethod(): (...args: readonly unknown[]) => unknown {
    const dispatcher = this
    return function (this: unknown, ...args) {
      return dispatcher.callOn(this, args)
    }
  }

  /** What {@link help} and the documentation say of all implementations; PyTorch's `__doc__`. */
  get documentation(): string {
    const known = this.ordering.toReversed().flatMap((signature) => this.#implementations.filter((each) => each.signature === signature))
    const others = known.filter(({ doc }) => doc === null).map(({ signature }) => strSignature(signature))
    return [
      `Multiply dispatched method: ${this.name}`,
      ...(this.doc === null ? [] : [this.doc]),
      ...known.flatMap(({ signature, doc }) => {
        const head = `Inputs: <${strSignature(signature)}>`
        return doc === null ? [] : [`${head}\n${'-'.repeat(head.length + 1)}\n${doc.trim()}`]
      }),
      ...(others.length === 0 ? [] : [`Other signatures:\n    ${others.join('\n    ')}`]),
    ].join('\n\n')
  }

  #implementationFor(args: readonly unknown[]): Implementation {
    for (const found of this.#fitting(args.map(typeOf))) return found
    throw new ArgumentError(`No function found for ${this.name}(${args.map(valueText).join(', ')})`)
  }

  /** Prints what is known about the implementation for these arguments. */
  help(...args: readonly unknown[]): void {
    console.log(this.#implementationFor(args).doc ?? '')
  }

  /** Prints the source of the implementation for these arguments. @throws ArgumentError if none fits. */
  source(...args: readonly unknown[]): void {
    console.log(String(this.#implementationFor(args).fn))
  }

  override toString(): string {
    return `<dispatched ${this.name}>`
  }
}

/** Warns of ambiguous signatures. PyTorch's ambiguity_warn. */
export function ambiguityWarn(dispatcher: Dispatcher, pairs: readonly (readonly [Signature, Signature])[]): void {
  console.warn(`AmbiguityWarning: ${warningText(dispatcher.name, pairs)}`)
}
