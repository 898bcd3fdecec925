// The numbers of a kernel for any sizes: each is a constant times sizes, strides and numbers that the kernel's inputs have at the call.
//
// A kernel is written twice, for two choices of sizes that are primes wherever the program allows that. A number in it that a prime divides has that size as a factor, and one that no size divides is a constant.
// Both must agree in all factors, so a constant that is a multiple of a size by chance, or a sum of sizes, is found: then there is no such kernel.
import { sizeParam } from '../../kernels/index.ts'
import type { Size, SizeParam } from '../../kernels/index.ts'
import { Tensor } from '../../tensor/index.ts'
import type { TensorSpec } from '../../tensor/index.ts'
import { nth } from '../known.ts'

/** What is known of an input: the layout of a tensor, a size as a number, or a number that differs from call to call and is no size. */
export type Sample =
  | { readonly kind: 'tensor'; readonly spec: Required<Pick<TensorSpec, 'shape' | 'dtype' | 'strides'>> }
  | { readonly kind: 'size'; readonly value: number }
  | { readonly kind: 'scalar'; readonly value: number }

/** A number of an input: the size or the stride of a tensor's dimension, or the input itself. */
interface Place {
  readonly input: number
  readonly what: 'size' | 'stride' | 'number'
  readonly dim: number
}

/** A number of an input that no other one gives. `plus`: what is added to it, for what is cut off at the ends. */
interface Atom extends Place {
  readonly plus: number
}

/** A constant times the values of some atoms, by their positions. */
export interface Product {
  readonly constant: number
  readonly atoms: readonly number[]
}

/** What is cut off, or added, at an end. */
const NEAR = [-1, 1, -2, 2]

/** The numbers of the inputs of a kernel: which of them differ from call to call, and what the others must be. */
export class Layouts {
  readonly #atoms: Atom[] = []
  /** By sample: the values of the atoms. */
  readonly #values: readonly [number[], number[]] = [[], []]
  /** What holds of the inputs of every call: it is checked, since the kernel relies on it. */
  readonly #checks: { readonly place: Place; readonly product: Product }[] = []

  /** The atoms that are sizes, or follow from sizes, in what the kernel is made of. */
  #sizes: readonly number[] = []

  private constructor() {}

  /** The numbers of inputs that have two samples; null if one differs in more than numbers. */
  static of(a: readonly Sample[], b: readonly Sample[]): Layouts | null {
    const layouts = new Layouts()
    for (const what of ['size', 'stride'] as const)
      for (const [input, one] of a.entries()) {
        const other = nth(b, input)
        if (one.kind !== other.kind) return null
        if (one.kind === 'size' && other.kind === 'size' && what === 'size') layouts.#add({ input, what: 'number', dim: 0 }, one.value, other.value)
        if (one.kind !== 'tensor' || other.kind !== 'tensor') continue
        if (one.spec.dtype !== other.spec.dtype || one.spec.shape.length !== other.spec.shape.length) return null
        const list = what === 'size' ? 'shape' : 'strides'
        one.spec[list].forEach((n, dim) => {
          // The stride of one element is never used.
          if (what === 'size' || one.spec.shape[dim] !== 1) layouts.#add({ input, what, dim }, n, nth(other.spec[list], dim))
        })
      }
    for (const atom of layouts.#atoms.filter(({ what }) => what !== 'stride'))
      for (const plus of NEAR) layouts.#addAtom({ ...atom, plus }, layouts.#sampleOf(atom, 0) + plus, layouts.#sampleOf(atom, 1) + plus)
    return layouts
  }

  /** A number of an input: an atom, unless it follows from those before. */
  #add(place: Place, a: number, b: number): void {
    const product = a === b ? { constant: a, atoms: [] } : this.#common(a, b)
    if (product === null) this.#addAtom({ ...place, plus: 0 }, a, b)
    else this.#checks.push({ place, product })
  }

  #addAtom(atom: Atom, a: number, b: number): void {
    this.#atoms.push(atom)
    this.#values[0].push(a)
    this.#values[1].push(b)
  }

  #sampleOf(atom: Atom, sample: 0 | 1): number {
    return nth(this.#values[sample], this.#atoms.indexOf(atom))
  }

  #common(a: number, b: number): Product | null {
    const [one, other] = [this.productOf(a, 0), this.productOf(b, 1)]
    return sameProduct(one, other) ? one : this.#fraction(a, b)
  }

  /** A number that is the same fraction of an atom, or of two, in both samples, such as 3/2 of a size. It would share factors with them, and products of sizes could be taken apart in several ways. */
  #fraction(a: number, b: number): Product | null {
    const [ofA, ofB] = this.#values
    for (const [i, oneA] of ofA.entries()) {
      const oneB = nth(ofB, i)
      if (a * oneB === b * oneA) return { constant: a / oneA, atoms: [i] }
      for (let j = 0; j <= i; j++) {
        const [bothA, bothB] = [oneA * nth(ofA, j), oneB * nth(ofB, j)]
        if (a * bothB === b * bothA) return { constant: a / bothA, atoms: [j, i] }
      }
    }
    return null
  }

  /** What a number is that follows from sample 0 or 1. */
  productOf(value: number, sample: 0 | 1): Product {
    const values = this.#values[sample]
    const atoms: number[] = []
    let rest = value
    for (const [i, own] of values.entries()) {
      if (own <= 1 || rest === 0) continue
      for (; rest % own === 0; rest /= own) atoms.push(i)
    }
    return { constant: rest, atoms }
  }

  /** Says which numbers the kernel is made of. It is not for calls in which one of their sizes is 0 or 1: these broadcast, are left out by `squeeze`, or have nothing to reduce. */
  relyOn(products: readonly Product[]): void {
    const used = new Set([...products, ...this.#checks.map(({ product }) => product)].flatMap(({ atoms }) => atoms))
    this.#sizes = [...used].filter((atom) => nth(this.#atoms, atom).what !== 'stride')
  }

  /** The values of the atoms in a call; null if its inputs are not what the kernel is for. */
  valuesOf(inputs: readonly unknown[]): readonly number[] | null {
    const values = this.#atoms.map((atom) => numberAt(inputs, atom) + atom.plus)
    for (const atom of this.#sizes) if (nth(values, atom) < 2) return null
    for (const { place, product } of this.#checks) if (numberAt(inputs, place) !== valueOf(product, values)) return null
    return values
  }
}

/** The value of a product for those of the atoms. */
export function valueOf({ constant, atoms }: Product, values: readonly number[]): number {
  let value = constant
  for (const atom of atoms) value *= values[atom] ?? NaN
  return value
}

export const sameProduct = (a: Product, b: Product): boolean => a.constant === b.constant && a.atoms.join() === b.atoms.join()

function numberAt(inputs: readonly unknown[], { input, what, dim }: Place): number {
  const value = inputs[input]
  if (!(value instanceof Tensor)) return what === 'number' && typeof value === 'number' ? value : NaN
  return (what === 'size' ? value.sizes[dim] : value.steps[dim]) ?? NaN
}

/** Names the sizes of a kernel that is written for a sample: one parameter for each number that differs from call to call. */
export class SizeNames {
  readonly #layouts: Layouts
  readonly #sample: 0 | 1
  readonly #named = new Map<string, { readonly param: SizeParam; readonly product: Product }>()

  constructor(layouts: Layouts, sample: 0 | 1) {
    this.#layouts = layouts
    this.#sample = sample
  }

  of(size: number): Size {
    const product = this.#layouts.productOf(size, this.#sample)
    if (product.atoms.length === 0) return size
    const key = `${product.constant} ${product.atoms.join()}`
    const known = this.#named.get(key)
    if (known !== undefined) return known.param
    const param = sizeParam(`n${this.#named.size}`)
    this.#named.set(key, { param, product })
    return param
  }

  params(): readonly SizeParam[] {
    return [...this.#named.values()].map(({ param }) => param)
  }

  /** What each parameter is, in their order. */
  products(): readonly Product[] {
    return [...this.#named.values()].map(({ product }) => product)
  }
}
