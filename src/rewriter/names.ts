// The names that a program declares and uses.
import { walk } from './syntax.ts'
import type { AnyNode } from './syntax.ts'

/** What a program does with names. */
export interface Names {
  /** All names that it declares, in any scope. */
  readonly declared: ReadonlySet<string>
  /** The names that it uses and does not declare. */
  readonly free: ReadonlySet<string>
  /** Those among them that it assigns. */
  readonly assigned: ReadonlySet<string>
  /** Whether it uses private names of a class that it does not contain. */
  readonly hasPrivate: boolean
}

/** The names of a program. A name that is declared anywhere counts as declared everywhere. */
export function namesOf(program: AnyNode): Names {
  const declared = new Set<string>(['arguments', 'undefined'])
  const used = new Set<string>()
  const assigned = new Set<string>()
  let [hasPrivate, hasClass] = [false, false]
  walk(program, (node) => {
    switch (node.type) {
      case 'Identifier':
        used.add(node.name)
        return
      case 'MemberExpression':
        return node.computed || node.property.type === 'PrivateIdentifier' ? [] : [node.property]
      case 'Property':
      case 'MethodDefinition':
      case 'PropertyDefinition':
        // `{ x }` stands for `{ x: x }`: the value is the same node.
        return node.computed || (node.type === 'Property' && node.shorthand) ? [] : [node.key]
      case 'VariableDeclarator':
        declare(node.id, declared)
        return
      case 'FunctionDeclaration':
      case 'FunctionExpression':
      case 'ArrowFunctionExpression':
        if (node.type !== 'ArrowFunctionExpression' && node.id) declared.add(node.id.name)
        for (const parameter of node.params) declare(parameter, declared)
        return
      case 'ClassDeclaration':
      case 'ClassExpression':
        hasClass = true
        if (node.id) declared.add(node.id.name)
        return
      case 'CatchClause':
        if (node.param) declare(node.param, declared)
        return
      case 'ImportSpecifier':
      case 'ImportDefaultSpecifier':
      case 'ImportNamespaceSpecifier':
        declared.add(node.local.name)
        return
      case 'LabeledStatement':
        return [node.label]
      case 'BreakStatement':
      case 'ContinueStatement':
        return node.label ? [node.label] : []
      case 'MetaProperty':
        return [node.meta, node.property]
      case 'AssignmentExpression':
        declare(node.left, assigned)
        return
      case 'UpdateExpression':
        declare(node.argument, assigned)
        return
      case 'UnaryExpression':
        // A name that does not exist may stand behind typeof.
        return node.operator === 'typeof' && node.argument.type === 'Identifier' ? [node.argument] : []
      case 'PrivateIdentifier':
        hasPrivate = true
        return
      default:
    }
  })
  const isFree = (name: string): boolean => !declared.has(name)
  return { declared, free: new Set([...used].filter(isFree)), assigned: new Set([...assigned].filter(isFree)), hasPrivate: hasPrivate && !hasClass }
}

/** Adds the names that a pattern binds. */
function declare(pattern: AnyNode, names: Set<string>): void {
  switch (pattern.type) {
    case 'Identifier':
      names.add(pattern.name)
      return
    case 'ObjectPattern':
      for (const property of pattern.properties) declare(property.type === 'Property' ? property.value : property, names)
      return
    case 'ArrayPattern':
      for (const element of pattern.elements) if (element !== null) declare(element, names)
      return
    case 'AssignmentPattern':
      declare(pattern.left, names)
      return
    case 'RestElement':
      declare(pattern.argument, names)
      return
    case 'ParenthesizedExpression':
      declare(pattern.expression, names)
      return
    default:
  }
}
