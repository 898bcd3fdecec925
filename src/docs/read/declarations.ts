// The declarations of a program: at the top of its modules, in namespaces, members of classes and interfaces, functions in object literals, and what CommonJS assigns to `exports`
// or to a prototype. Local functions belong to the declaration around them.
import type * as ts from 'typescript6'
import type { Compiler } from '../compiler.ts'
import type { SymbolKind } from '../model.ts'

/** A declaration, with all syntax nodes that declare it. */
export interface Declared {
  readonly id: string
  readonly module: string
  readonly name: string
  kind: SymbolKind
  readonly file: ts.SourceFile
  readonly nodes: ts.Node[]
  /** Whether it is meant for its class or module alone: `private`, `#name`. */
  isHidden: boolean
}

/** What a name is that is declared as several: a value, which can be called and imported, before a type. */
const FIRST: readonly SymbolKind[] = ['class', 'function', 'enum', 'constant', 'interface', 'type', 'namespace']

export class Declarations {
  readonly all = new Map<string, Declared>()
  readonly ids = new Map<ts.Node, string>()
  /** The files that were added. */
  readonly modules = new Set<ts.SourceFile>()

  idOf(node: ts.Node): string | undefined {
    return this.ids.get(node)
  }

  /** Adds the declarations of a module. */
  addFile(ts: Compiler, file: ts.SourceFile, path: string): void {
    this.modules.add(file)
    const reader = new FileReader(ts, this, file, path)
    for (const statement of file.statements) reader.statement(statement, '')
  }
}

/** The declarations of one file. `prefix` is what stands before a name: `Class.`. */
class FileReader {
  readonly #ts: Compiler
  readonly #into: Declarations
  readonly #file: ts.SourceFile
  readonly #path: string

  constructor(compiler: Compiler, into: Declarations, file: ts.SourceFile, path: string) {
    this.#ts = compiler
    this.#into = into
    this.#file = file
    this.#path = path
  }

  #add(name: string, kind: SymbolKind, nodes: readonly ts.Node[], isHidden = false): void {
    const id = `${this.#path}#${name}`
    const { all, ids } = this.#into
    const known = all.get(id)
    // A name that is class and interface, or constant and type, is the first of both.
    if (known === undefined) all.set(id, { id, module: this.#path, name, kind, file: this.#file, nodes: [nodes[0] ?? this.#file], isHidden })
    else {
      if (nodes[0] !== undefined) known.nodes.push(nodes[0])
      if (FIRST.includes(kind) && FIRST.indexOf(kind) < FIRST.indexOf(known.kind)) known.kind = kind
    }
    for (const node of nodes) ids.set(node, id)
  }

  statement(node: ts.Node, prefix: string): void {
    const ts = this.#ts
    const add = (name: string, kind: SymbolKind, ...nodes: readonly ts.Node[]): void => this.#add(prefix + name, kind, nodes)
    if (ts.isFunctionDeclaration(node)) add(node.name?.text ?? 'default', 'function', node)
    else if (ts.isClassDeclaration(node)) {
      const name = node.name?.text ?? 'default'
      add(name, 'class', node)
      this.#members(node.members, `${prefix}${name}.`)
    } else if (ts.isInterfaceDeclaration(node)) {
      add(node.name.text, 'interface', node)
      this.#members(node.members, `${prefix}${node.name.text}.`)
    } else if (ts.isTypeAliasDeclaration(node)) {
      add(node.name.text, 'type', node)
      if (ts.isTypeLiteralNode(node.type)) this.#members(node.type.members, `${prefix}${node.name.text}.`)
    } else if (ts.isEnumDeclaration(node)) add(node.name.text, 'enum', node)
    else if (ts.isModuleDeclaration(node)) this.#namespace(node, prefix)
    else if (ts.isVariableStatement(node)) for (const declared of node.declarationList.declarations) this.#variable(declared, prefix)
    else if (ts.isExportAssignment(node)) this.#value('default', node.expression, [node], prefix)
    else if (ts.isExpressionStatement(node) && ts.isBinaryExpression(node.expression)) this.#assignment(node.expression)
  }

  #namespace(node: ts.ModuleDeclaration, prefix: string): void {
    const ts = this.#ts
    // `declare module './other.ts'` adds to another module, which has its own declarations.
    if (!ts.isIdentifier(node.name) || node.name.text === 'global') return
    this.#add(prefix + node.name.text, 'namespace', [node])
    const inside = `${prefix}${node.name.text}.`
    if (node.body === undefined) return
    if (ts.isModuleDeclaration(node.body)) this.#namespace(node.body, inside)
    else if (ts.isModuleBlock(node.body)) for (const statement of node.body.statements) this.statement(statement, inside)
  }

  #variable(node: ts.VariableDeclaration, prefix: string): void {
    const ts = this.#ts
    if (ts.isIdentifier(node.name)) {
      // `const x = require('x')` is an import.
      if (node.initializer !== undefined && ts.isCallExpression(node.initializer) && node.initializer.expression.getText(this.#file) === 'require')
        return
      this.#value(node.name.text, node.initializer, [node], prefix)
      return
    }
    const visit = (pattern: ts.BindingPattern): void => {
      for (const element of pattern.elements) {
        if (!ts.isBindingElement(element)) continue
        if (ts.isIdentifier(element.name)) this.#add(prefix + element.name.text, 'constant', [element])
        else visit(element.name)
      }
    }
    if (node.initializer === undefined || !node.initializer.getText(this.#file).startsWith('require(')) visit(node.name)
  }

  /** A name for a value: a function, class or object literal is taken apart. */
  #value(name: string, value: ts.Expression | undefined, nodes: readonly ts.Node[], prefix: string): void {
    const ts = this.#ts
    const inner = value === undefined ? undefined : this.#inner(value)
    const isFunction = inner !== undefined && (ts.isArrowFunction(inner) || ts.isFunctionExpression(inner))
    const isClass = inner !== undefined && ts.isClassExpression(inner)
    if (inner !== undefined && ts.isIdentifier(inner) && nodes.some((node) => ts.isExportAssignment(node) || ts.isBinaryExpression(node))) return
    this.#add(prefix + name, isFunction ? 'function' : isClass ? 'class' : 'constant', isFunction || isClass ? [...nodes, inner] : nodes)
    if (isClass) this.#members(inner.members, `${prefix}${name}.`)
    if (inner !== undefined && ts.isObjectLiteralExpression(inner)) this.#functionsOf(inner, `${prefix}${name}.`)
  }

  /** An expression without `as const`, `satisfies T`, parentheses and `Object.freeze(...)` around it. */
  #inner(value: ts.Expression): ts.Expression {
    const ts = this.#ts
    if (ts.isAsExpression(value) || ts.isSatisfiesExpression(value) || ts.isParenthesizedExpression(value)) return this.#inner(value.expression)
    const [only] = ts.isCallExpression(value) && value.expression.getText() === 'Object.freeze' ? value.arguments : []
    return only === undefined ? value : this.#inner(only)
  }

  #functionsOf(literal: ts.ObjectLiteralExpression, prefix: string): void {
    const ts = this.#ts
    for (const property of literal.properties) {
      const name = property.name === undefined ? null : memberName(ts, property.name, this.#file)
      if (name === null) continue
      if (ts.isMethodDeclaration(property)) this.#add(prefix + name, 'method', [property])
      else if (ts.isAccessor(property)) this.#add(prefix + name, 'accessor', [property])
      else if (ts.isPropertyAssignment(property)) {
        const value = this.#inner(property.initializer)
        if (ts.isArrowFunction(value) || ts.isFunctionExpression(value)) this.#add(prefix + name, 'method', [property, value])
      }
    }
  }

  #members(members: Iterable<ts.ClassElement | ts.TypeElement>, prefix: string): void {
    const ts = this.#ts
    for (const member of members) {
      if (ts.isConstructorDeclaration(member)) {
        this.#add(`${prefix}constructor`, 'constructor', [member])
        for (const parameter of member.parameters)
          if (ts.isParameterPropertyDeclaration(parameter, member) && ts.isIdentifier(parameter.name))
            this.#add(prefix + parameter.name.text, 'property', [parameter], isPrivate(ts, parameter))
        continue
      }
      const name = member.name === undefined ? null : memberName(ts, member.name, this.#file)
      if (name === null) continue
      const value = ts.isPropertyDeclaration(member) ? member.initializer : undefined
      const isFunction = value !== undefined && (ts.isArrowFunction(value) || ts.isFunctionExpression(value))
      const kind =
        ts.isMethodDeclaration(member) || ts.isMethodSignature(member) || isFunction ? 'method' : ts.isAccessor(member) ? 'accessor' : 'property'
      this.#add(prefix + name, kind, isFunction ? [member, value] : [member], isPrivate(ts, member) || name.startsWith('#'))
    }
  }

  /** CommonJS: `exports.f = ...`, `module.exports = ...`, `A.prototype.b = ...`, `A.b = ...`. */
  #assignment(node: ts.BinaryExpression): void {
    const ts = this.#ts
    if (node.operatorToken.kind !== ts.SyntaxKind.EqualsToken || !ts.isPropertyAccessExpression(node.left)) return
    const left = node.left.getText(this.#file).replaceAll(/\s/g, '')
    const [, exported] = /^(?:module\.)?exports\.([\w$]+)$/.exec(left) ?? []
    if (exported !== undefined) {
      // `exports.a = exports.b = f`
      const right = ts.isBinaryExpression(node.right) ? node.right : null
      if (right !== null) this.#assignment(right)
      else this.#value(exported, node.right, [node, node.left], '')
      return
    }
    if (left === 'module.exports') {
      const value = this.#inner(node.right)
      if (ts.isObjectLiteralExpression(value)) this.#functionsOf(value, '')
      else if (!ts.isIdentifier(value)) this.#value('default', value, [node, node.left], '')
      return
    }
    const [, of, member] = /^([\w$]+)\.(?:prototype\.)?([\w$]+)$/.exec(left) ?? []
    if (of === undefined || member === undefined || member === 'prototype' || !this.#into.all.has(`${this.#path}#${of}`)) return
    const isFunction = ts.isFunctionExpression(node.right) || ts.isArrowFunction(node.right)
    this.#add(`${of}.${member}`, isFunction ? 'method' : 'property', isFunction ? [node, node.left, node.right] : [node, node.left])
  }
}

function isPrivate(ts: Compiler, node: ts.Node): boolean {
  return ts.canHaveModifiers(node) && (ts.getModifiers(node) ?? []).some(({ kind }) => kind === ts.SyntaxKind.PrivateKeyword)
}

/** The name of a member: `f`, `#f`, `[Symbol.iterator]`; null for a name that is computed otherwise. */
function memberName(ts: Compiler, name: ts.PropertyName, file: ts.SourceFile): string | null {
  if (ts.isIdentifier(name) || ts.isPrivateIdentifier(name) || ts.isNumericLiteral(name) || ts.isStringLiteralLike(name)) return name.text
  const text = ts.isComputedPropertyName(name) ? name.expression.getText(file) : ''
  return /^Symbol\.\w+$/.test(text) ? `[${text}]` : null
}
