// The Kullback-Leibler divergence of two distributions: a table of rules for pairs of classes. PyTorch's torch.distributions.kl.
import { ArgumentError, UnsupportedError } from '../errors/index.ts'
import { checkCallable, isFunction, valueText } from '../protocol/index.ts'
import type { TargetFunction } from '../protocol/index.ts'
import type { Tensor } from '../tensor/index.ts'
import { Distribution } from './distribution.ts'

/** A class of distributions. */
export type DistributionClass<D extends Distribution> = abstract new (...args: never[]) => D

interface KlRule {
  readonly p: DistributionClass<Distribution>
  readonly q: DistributionClass<Distribution>
  /** Null for distributions of other classes. */
  readonly compute: (p: Distribution, q: Distribution) => Tensor | null
}

/** The rules, by which a program adds its own. */
export class KlTable {
  readonly #rules: KlRule[] = []

  add<P extends Distribution, Q extends Distribution>(p: DistributionClass<P>, q: DistributionClass<Q>, rule: (p: P, q: Q) => Tensor): void {
    this.#rules.push({ p, q, compute: (a, b) => (a instanceof p && b instanceof q ? rule(a, b) : null) })
  }

  /** The rule for the classes nearest to those of `p` and `q`, the latest of equally near ones. */
  compute(p: Distribution, q: Distribution): Tensor {
    const fitting = this.#rules.filter((rule) => p instanceof rule.p && q instanceof rule.q)
    const distance = (rule: KlRule): number => generations(p, rule.p) + generations(q, rule.q)
    const nearest = fitting.reduce<KlRule | null>((best, rule) => (best === null || distance(rule) <= distance(best) ? rule : best), null)
    const result = nearest?.compute(p, q) ?? null
    if (result === null)
      throw new UnsupportedError(
        `klDivergence: there is no formula for ${p.constructor.name} and ${q.constructor.name}. Give one by registerKl, or estimate it: p.logProb(x).sub(q.logProb(x)).mean() with samples x of p.`,
      )
    return result
  }
}

/** How many classes are between the class of a value and one that it is an instance of. */
function generations(value: object, type: DistributionClass<Distribution>): number {
  let [count, prototype]: [number, unknown] = [0, Object.getPrototypeOf(value)]
  while (typeof prototype === 'object' && prototype !== null && prototype !== type.prototype) {
    count++
    prototype = Object.getPrototypeOf(prototype)
  }
  return count
}

/** Throws ArgumentError unless it is a distribution. */
export function checkDistributions(where: string, given: Readonly<Record<string, unknown>>): void {
  for (const [name, value] of Object.entries(given))
    if (!(value instanceof Distribution)) throw new ArgumentError(`${where}: argument '${name}' must be a Distribution, got ${valueText(value)}.`)
}

/** Whether a function is the class, or one of its subclasses. */
const isDistributionClass = (value: TargetFunction): boolean =>
  'prototype' in value && (value.prototype === Distribution.prototype || value.prototype instanceof Distribution)

/** Throws ArgumentError unless it is a class and a function of two distributions. */
export function checkRule(p: unknown, q: unknown, rule: unknown): void {
  for (const [name, value] of Object.entries({ p, q }))
    if (!isFunction(value) || !isDistributionClass(value))
      throw new ArgumentError(`registerKl: argument '${name}' must be a class of distributions, such as Normal, got ${valueText(value)}.`)
  checkCallable('registerKl', 'rule', rule)
}
