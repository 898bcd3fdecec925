// Checks of arguments that are graphs, nodes and GraphModules. They look at what the objects have, so that every wing can use them.
import { ArgumentError } from '../errors/index.ts'
import { checkArgument } from './arguments.ts'
import { isCallable, isClass, isModule, isObject } from './kinds.ts'
import { valueText } from './valueText.ts'

const has = (value: unknown, name: string): boolean => isObject(value) && name in value

/** Throws ArgumentError unless the argument is a Graph. */
export const checkGraph = (where: string, value: unknown, name = 'graph'): void =>
  checkArgument(has(value, 'findNodes'), where, name, 'a Graph', value)

/** Throws ArgumentError unless the argument is a Node. */
export const checkNode = (where: string, value: unknown, name = 'node'): void => checkArgument(has(value, 'users'), where, name, 'a Node', value)

/** Throws ArgumentError unless the argument is a GraphModule. */
export function checkGraphModule(where: string, value: unknown, name = 'gm'): void {
  if (isModule(value) && 'graph' in value) return
  throw new ArgumentError(`${where}: argument '${name}' must be a GraphModule, got ${valueText(value)}.${graphModuleHint(value)}`)
}

/** How a GraphModule is made of what was given in its place. */
function graphModuleHint(value: unknown): string {
  if (has(value, 'findNodes')) return ' Pass the GraphModule of the graph, or make one: new GraphModule(root, graph).'
  if (!isCallable(value)) return ''
  return isClass(value) ? ' Make a module and trace it: symbolicTrace(new Model()).' : ' Trace it first: symbolicTrace(model).'
}
