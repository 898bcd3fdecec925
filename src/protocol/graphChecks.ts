// Checks of arguments that are graphs, nodes and GraphModules. They look at what the objects have, so that every wing can use them.
import { checkArgument } from './arguments.ts'
import { isModule, isObject } from './kinds.ts'

const has = (value: unknown, name: string): boolean => isObject(value) && name in value

/** Throws ArgumentError unless the argument is a Graph. */
export const checkGraph = (where: string, value: unknown, name = 'graph'): void =>
  checkArgument(has(value, 'findNodes'), where, name, 'a Graph', value)

/** Throws ArgumentError unless the argument is a Node. */
export const checkNode = (where: string, value: unknown, name = 'node'): void => checkArgument(has(value, 'users'), where, name, 'a Node', value)

/** Throws ArgumentError unless the argument is a GraphModule. */
export const checkGraphModule = (where: string, value: unknown, name = 'gm'): void =>
  checkArgument(isModule(value) && 'graph' in value, where, name, 'a GraphModule', value)
