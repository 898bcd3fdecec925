// Arguments of an operator call as a person would write them.
import type { Argument } from '../fx/index.ts'
import type { SchemaArgument } from '../protocol/index.ts'

/** From one value per schema argument: defaults left out, keyword-only arguments as keywords. */
export function spell(schema: readonly SchemaArgument[], values: readonly Argument[]): { args: Argument[]; kwargs: Record<string, Argument> } {
  const args: Argument[] = []
  const kwargs: Record<string, Argument> = {}
  const isDefault = (i: number): boolean => {
    const arg = schema[i] as SchemaArgument
    return (
      arg.hasDefault &&
      (Object.is(arg.default, values[i]) || (Array.isArray(arg.default) && JSON.stringify(arg.default) === JSON.stringify(values[i])))
    )
  }
  let last = values.length
  while (last > 0 && ((schema[last - 1] as SchemaArgument).kwargOnly || isDefault(last - 1))) last--
  for (let i = 0; i < values.length; i++) {
    const arg = schema[i] as SchemaArgument
    if (arg.kwargOnly) {
      if (!isDefault(i)) kwargs[arg.name] = values[i] as Argument
    } else if (i < last) args.push(values[i] as Argument)
  }
  return { args, kwargs }
}
