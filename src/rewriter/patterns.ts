// What destructuring binds: names with defaults, and properties that a traced value does not have.
import { bare } from './syntax.ts'
import type { AnyNode } from './syntax.ts'

/** Properties that JavaScript itself reads, so that a traced value has none of these names. */
export const ABSENT: ReadonlySet<string> = new Set(['then', 'constructor', 'prototype'])

/** The names that a pattern binds with a default of their own. */
function defaultsOf(pattern: AnyNode): string[] {
  switch (pattern.type) {
    case 'ObjectPattern':
      return pattern.properties.flatMap((property) => defaultsOf(property.type === 'Property' ? property.value : property.argument))
    case 'ArrayPattern':
      return pattern.elements.flatMap((element) => (element === null ? [] : defaultsOf(element)))
    case 'AssignmentPattern':
      return pattern.left.type === 'Identifier' ? [pattern.left.name] : defaultsOf(pattern.left)
    default:
      return []
  }
}

/** The names that a statement binds with defaults, by declaring or assigning them. */
export function defaultsOfStatement(statement: AnyNode): string[] {
  if (statement.type === 'ExportNamedDeclaration') return statement.declaration ? defaultsOfStatement(statement.declaration) : []
  if (statement.type === 'VariableDeclaration') return statement.declarations.flatMap(({ id }) => defaultsOf(id))
  if (statement.type !== 'ExpressionStatement') return []
  const expression = bare(statement.expression)
  return expression.type === 'AssignmentExpression' && expression.operator === '=' ? defaultsOf(expression.left) : []
}

/** Whether an object pattern takes a property that a traced value does not have. */
export const takesAbsent = (pattern: AnyNode): boolean =>
  pattern.type === 'ObjectPattern' &&
  pattern.properties.some(
    (property) => property.type === 'Property' && !property.computed && property.key.type === 'Identifier' && ABSENT.has(property.key.name),
  )
