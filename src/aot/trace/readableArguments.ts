// Arguments of an operator call as a person would write them.
import { checkArray } from '../../protocol/index.ts'
import type { SchemaArgument } from '../../protocol/index.ts'

const isDefault = (arg: SchemaArgument, value: unknown): boolean =>
  arg.hasDefault && (Object.is(arg.default, value) || (Array.isArray(arg.default) && JSON.stringify(arg.default) === JSON.stringify(value)))

/** From one value per schema argument: defaults left out, keyword-only arguments as keywords. */
export function readableArguments<V>(schema: readonly SchemaArgument[], values: readonly V[]): { args: V[]; kwargs: Record<string, V> } {
  checkArray('readableArguments', 'schema', schema)
  checkArray('readableArguments', 'values', values)
  const args: V[] = []
  const kwargs: Record<string, V> = {}
  const given = values.flatMap((value, i) => {
    const arg = schema[i]
    return arg === undefined ? [] : [{ arg, value, isDefault: isDefault(arg, value) }]
  })
  const last = given.findLastIndex(({ arg, isDefault: left }) => !arg.kwargOnly && !left)
  for (const [i, { arg, value, isDefault: left }] of given.entries()) {
    if (!arg.kwargOnly) {
      if (i <= last) args.push(value)
    } else if (!left) kwargs[arg.name] = value
  }
  return { args, kwargs }
}
