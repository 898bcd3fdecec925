// Random indices as numbers of JavaScript.
import { randint, randperm } from '../ops/index.ts'
import { philox } from '../tensor/index.ts'
import type { Generator, Tensor } from '../tensor/index.ts'

const numbers = (tensor: Tensor): number[] => Array.from(tensor.toTypedArray(), Number)

/** The indices from 0 to n - 1 in random order. Without a generator, the default one. */
export const permutation = (n: number, generator: Generator | null): number[] => (n === 0 ? [] : numbers(randperm(n, { generator })))

/** `count` random indices below n, with repetitions. */
export const randomIndices = (n: number, count: number, generator: Generator): number[] => numbers(randint(0, n, [count], { generator }))

/** A seed, drawn from a generator. */
export const drawSeed = (generator: Generator): number => philox(generator.draw(), 0)[0]
