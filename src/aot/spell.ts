// Arguments of an operator call as a person would write them.
import { checkArray } from '../protocol/index.ts'
import type { Argument } from '../fx/index.ts'
import type { SchemaArgument } from '../protocol/index.ts'

const isDefault = (arg: SchemaArgument, value: Argument): boolean =>
  arg.hasDefault && (Object.is(arg.default, value) || (Array.isArray(arg.default) && JSON.stringify(arg.default) === JSON.stringify(value)))

/** From one value per schema argument: defaults left out, keyword-only arguments as keywords. */
export function spell(schema: readonly SchemaArgument[], values: readonly Argument[]): { args: Argument[]; kwargs: Record<string, Argument> } {
  checkArray('spell', 'schema', schema)
  checkArray('spell', 'values', values)
  const args: Argument[] = []
  const kwargs: Record<string, Argument> = {}
  const given = schema.slice(0, values.length).map((arg, i) => ({ arg, value: values[i], isDefault: isDefault(arg, values[i]) }))
  const last = given.findLastIndex(({ arg, isDefault: left }) => !arg.kwargOnly && !left)
  for (const [i, { arg, value, isDefault: left }] of given.entries()) {
    if (!arg.kwargOnly) {
      if (i <= last) args.push(value)
    } else if (!left) kwargs[arg.name] = value
  }
  return { args, kwargs }
}
