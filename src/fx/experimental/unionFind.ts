// UnionFind: disjoint sets, joined in nearly constant time.
import { ArgumentError } from '../../errors/index.ts'
import { checkArgument } from '../../protocol/index.ts'

/** The most elements: both lists are made at once. */
const MOST = 2 ** 24

/** Disjoint sets of the numbers from 0 to n − 1, each with a representative. PyTorch's UnionFind. */
export class UnionFind {
  /** The sizes of the sets, by their representatives; 0 for numbers in no set. */
  readonly size: number[]
  readonly #parent: (number | null)[]

  constructor(n: number) {
    checkArgument(Number.isSafeInteger(n) && n >= 0 && n <= MOST, 'UnionFind', 'n', `a number of elements from 0 to ${MOST}`, n)
    this.size = Array.from({ length: n }, () => 0)
    this.#parent = Array.from({ length: n }, () => null)
  }

  /** Makes a set of one number. PyTorch's make_set. */
  makeSet(v: number): void {
    this.#parent[v] = v
    this.size[v] = 1
  }

  /** The representative of a number's set. @throws ArgumentError if it is in no set. */
  find(v: number): number {
    let root = v
    for (let next = this.#parentOf(root); next !== root; next = this.#parentOf(root)) root = next
    // Shorter paths for the next time.
    for (let at = v; at !== root;) {
      const next = this.#parentOf(at)
      this.#parent[at] = root
      at = next
    }
    return root
  }

  #parentOf(v: number): number {
    const parent = this.#parent[v]
    if (parent === null || parent === undefined) throw new ArgumentError(`UnionFind: Parent is None: ${v} is in no set; call makeSet(${v}) first.`)
    return parent
  }

  /** Joins the sets of two numbers, and returns the representative: that of the larger set, or of `a`. */
  join(a: number, b: number): number {
    const [one, other] = [this.find(a), this.find(b)]
    if (one === other) return one
    const [sizeOne, sizeOther] = [this.size[one] ?? 0, this.size[other] ?? 0]
    const [root, child] = sizeOne < sizeOther ? [other, one] : [one, other]
    this.#parent[child] = root
    this.size[root] = sizeOne + sizeOther
    return root
  }
}
