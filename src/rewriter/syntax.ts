// JavaScript's syntax trees, as acorn parses them.
import { parse } from 'acorn'
import type { AnyNode, Program } from 'acorn'
import { ArgumentError } from '../errors/index.ts'

export type { AnyNode, AssignmentExpression, MemberExpression, Program } from 'acorn'

/** Parses a module. @throws ArgumentError if it is not valid JavaScript. */
export function parseModule(code: string, file: string): Program {
  try {
    return parse(code, {
      ecmaVersion: 'latest',
      sourceType: 'module',
      preserveParens: true,
      allowHashBang: true,
      allowReturnOutsideFunction: true,
      allowSuperOutsideMethod: true,
      checkPrivateFields: false,
    })
  } catch (cause) {
    if (!(cause instanceof SyntaxError)) throw cause
    throw new ArgumentError(`${file} cannot be rewritten, because it is not valid JavaScript (types must be removed first): ${cause.message}`, {
      cause,
    })
  }
}

const isNode = (value: unknown): value is AnyNode => typeof value === 'object' && value !== null && 'type' in value && typeof value.type === 'string'

/** The nodes directly below a node, in order. */
function childrenOf(node: AnyNode): AnyNode[] {
  return Object.values(node).flatMap((value: unknown) => (Array.isArray(value) ? value.filter(isNode) : isNode(value) ? [value] : []))
}

/** Calls `visit` for a node and all below it, outer nodes first. What it returns is left out. */
export function walk(root: AnyNode, visit: (node: AnyNode) => readonly AnyNode[] | void): void {
  const stack = [root]
  for (let node = stack.pop(); node !== undefined; node = stack.pop()) {
    const skipped = visit(node) ?? []
    for (const child of childrenOf(node).toReversed()) if (!skipped.includes(child)) stack.push(child)
  }
}

/** The node inside parentheses. */
export function bare(node: AnyNode): AnyNode {
  let inner = node
  while (inner.type === 'ParenthesizedExpression') inner = inner.expression
  return inner
}
