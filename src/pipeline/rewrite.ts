// A rewrite is a named pattern with a condition, and what takes the place of what it matches. The compiler's rewrites of calls, those of graphs and those of programs have this form.

/** How a rewrite is written. `S` is a place where it may apply, `M` what its pattern finds out about the place, `R` what takes its place. */
export interface RewriteDefinition<S, M, R> {
  /** The name of the rewrite in lists, logs and errors. */
  readonly name: string
  /** What becomes what, in a sentence. */
  readonly what: string
  /** What the pattern finds at the place; null if it does not match. */
  readonly match: (place: S) => M | null
  /** Whether the replacement computes the same, and is worth it, for what was found. Default: always. */
  readonly condition?: (found: M, place: S) => boolean
  readonly replace: (found: M, place: S) => R
}

/** A rewrite in a list. */
export interface Rewrite<S, R> {
  readonly name: string
  readonly what: string
  /** Replaces the place; null if the pattern does not match there or its condition does not hold. */
  readonly at: (place: S) => (() => R) | null
}

/** A rewrite from its definition. */
export function defineRewrite<S, M, R>({ name, what, match, condition = () => true, replace }: RewriteDefinition<S, M, R>): Rewrite<S, R> {
  return {
    name,
    what,
    at: (place) => {
      const found = match(place)
      return found === null || !condition(found, place) ? null : () => replace(found, place)
    },
  }
}
