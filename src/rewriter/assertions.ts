// assertPresent: what the graph checks where a program asks whether a traced value is null. A tracer takes the value to be there.
import type { Node, Proxied } from '../fx/index.ts'
import { AssertionFailed, nodeOf } from '../fx/index.ts'
import { OVERRIDE, findOverride, nameTarget, withName } from '../protocol/index.ts'

/** Throws AssertionFailed if the value is undefined, or null unless `allowsNull`. Recorded if the value is traced. */
export const assertPresent: (value: unknown, message: string, allowsNull: boolean) => void = nameTarget(
  withName((...args: readonly [value: unknown, message: string, allowsNull: boolean]): void => {
    const override = findOverride(args)
    if (override !== null) return void override[OVERRIDE]('function', assertPresent, args, {})
    const [value, message, allowsNull] = args
    if (value === undefined || (value === null && !allowsNull)) throw new AssertionFailed(message)
  }, 'assert_present'),
  { name: 'tensorfx.rewriter.assert_present', effects: 'io' },
)

/** The nodes that an assertion of the graph looks at already: for undefined, and for null as well. */
const asserted = { undefined: new WeakSet<Node>(), null: new WeakSet<Node>() }

/** Records, once for each value, that a traced value is not undefined, nor null unless `allowsNull`. */
export function recordPresence(value: Proxied, allowsNull: boolean): void {
  const node = nodeOf(value)
  if (asserted.null.has(node) || (allowsNull && asserted.undefined.has(node))) return
  asserted[allowsNull ? 'undefined' : 'null'].add(node)
  const missing = allowsNull ? 'undefined' : 'null or undefined'
  assertPresent(
    value,
    `'${node.name}' is ${missing}, but the graph was traced for a value; fix an argument that is missing with concreteArgs.`,
    allowsNull,
  )
}
