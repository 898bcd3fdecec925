// Arguments of public functions: what a message says about one that does not fit.
import { ArgumentError } from '../errors/index.ts'
import { valueText } from './valueText.ts'

/** Throws ArgumentError unless `fits`. `where` is the function, `name` its argument, `expected` what it takes: `a GraphModule`. */
export function checkArgument(fits: boolean, where: string, name: string, expected: string, value: unknown): void {
  if (!fits) throw new ArgumentError(`${where}: argument '${name}' must be ${expected}, got ${valueText(value)}.`)
}
