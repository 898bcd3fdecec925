// What the functions of a module do: whom they call, which functions they hand over, and which errors they throw. Local functions count for the declaration around them.
import type * as ts from 'typescript6'
import { byText } from '../model.ts'
import type { Call, Throw } from '../model.ts'
import { behind, idOf, isJavaScript, lineOf } from './program.ts'
import type { Program } from './program.ts'

/** What a module does. */
export interface Uses {
  readonly calls: readonly Call[]
  readonly throws: ReadonlyMap<string, readonly Throw[]>
  readonly total: number
  readonly unresolved: number
}

const FUNCTIONS: ReadonlySet<string> = new Set(['function', 'method', 'class', 'accessor'])

/** The names that may stand for declarations that can run, so that other identifiers need no look-up: those of declarations, and others under which they are exported. */
export function runnableNames({ ts, declarations }: Program): { readonly functions: ReadonlySet<string>; readonly accessors: ReadonlySet<string> } {
  const [functions, accessors] = [new Set<string>(), new Set<string>()]
  for (const { statements } of declarations.modules)
    for (const statement of statements) {
      const clause = ts.isExportDeclaration(statement) ? statement.exportClause : undefined
      if (clause !== undefined && ts.isNamedExports(clause))
        for (const { name, propertyName } of clause.elements) if (propertyName !== undefined) functions.add(name.text)
    }
  for (const { name, kind } of declarations.all.values()) {
    if (!FUNCTIONS.has(kind)) continue
    const last = name.slice(name.lastIndexOf('.') + 1)
    if (kind === 'accessor') accessors.add(last)
    else functions.add(last)
  }
  return { functions, accessors }
}

type Names = ReturnType<typeof runnableNames>

export function usesOf(program: Program, path: string, file: ts.SourceFile, names: Names): Uses {
  const reader = new UseReader(program, file, names)
  reader.visit(file, `${path}#`)
  const calls = reader.calls.toSorted((a, b) => byText(a.from, b.from) || a.line - b.line || byText(a.to, b.to) || byText(a.kind, b.kind))
  const isSame = (a: Call, b: Call | undefined): boolean => a.from === b?.from && a.to === b.to && a.line === b.line && a.kind === b.kind
  return {
    ...{ throws: reader.throws, total: reader.total, unresolved: reader.unresolved },
    calls: calls.filter((call, i) => !isSame(call, calls[i - 1])),
  }
}

/** The names that a file gives to what it imports: `g` of `import { f as g }`, and default imports. */
function renamedIn({ ts }: Program, file: ts.SourceFile): ReadonlySet<string> {
  const names = new Set<string>()
  for (const statement of file.statements) {
    if (!ts.isImportDeclaration(statement)) continue
    const { name, namedBindings: bindings } = statement.importClause ?? {}
    if (name !== undefined) names.add(name.text)
    if (bindings !== undefined && ts.isNamedImports(bindings))
      for (const element of bindings.elements) if (element.propertyName !== undefined) names.add(element.name.text)
  }
  return names
}

class UseReader {
  readonly calls: Call[] = []
  readonly throws = new Map<string, Throw[]>()
  total = 0
  unresolved = 0
  readonly #program: Program
  readonly #file: ts.SourceFile
  readonly #names: Names
  /** Names that the file gives to what it imports. */
  readonly #renamed: ReadonlySet<string>
  readonly #isJavaScript: boolean

  constructor(program: Program, file: ts.SourceFile, names: Names) {
    this.#program = program
    this.#file = file
    this.#names = names
    this.#renamed = renamedIn(program, file)
    this.#isJavaScript = isJavaScript(file)
  }

  visit(node: ts.Node, around: string): void {
    const { ts, declarations } = this.#program
    if (ts.isIdentifier(node) || ts.isPrivateIdentifier(node)) return this.#name(node, around)
    // Tokens have no parts, and nothing is called in a type.
    if (node.kind <= ts.SyntaxKind.LastToken || (ts.isTypeNode(node) && !ts.isExpressionWithTypeArguments(node))) return
    const unit = this.#unit(node, declarations.idOf(node)) ?? around
    if (ts.isCallExpression(node) || ts.isNewExpression(node)) this.#call(node, unit)
    else if (ts.isTaggedTemplateExpression(node)) this.#callee(node.tag, 'call', unit)
    else if (ts.isDecorator(node)) this.#callee(node.expression, 'call', unit)
    else if (ts.isJsxOpeningLikeElement(node)) this.#callee(node.tagName, 'call', unit)
    else if (ts.isThrowStatement(node)) this.#thrown(node.expression, unit)
    ts.forEachChild(node, (child) => this.visit(child, unit))
  }

  /** A declaration is what its parts belong to, unless it is a type or a field without a function. */
  #unit(node: ts.Node, id: string | undefined): string | undefined {
    const { ts, declarations } = this.#program
    if (id === undefined) return undefined
    const kind = declarations.all.get(id)?.kind
    if (kind === 'namespace' || kind === 'interface' || kind === 'type') return undefined
    // Initialisers of fields run with the constructor.
    return kind === 'property' && (ts.isPropertyDeclaration(node) || ts.isParameter(node)) ? undefined : id
  }

  #add(from: string, to: string, node: ts.Node, kind: Call['kind']): void {
    this.calls.push({ from, to, line: lineOf(this.#file, node.getStart(this.#file)), kind })
  }

  #call(node: ts.CallExpression | ts.NewExpression, unit: string): void {
    const { ts, checker, declarations } = this.#program
    this.total++
    const callee = node.expression
    if (callee.kind === ts.SyntaxKind.ImportKeyword) return
    if (callee.kind === ts.SyntaxKind.SuperKeyword) {
      const id = idOf(this.#program, checker.getTypeAtLocation(callee).symbol)
      if (id !== null) this.#add(unit, declarations.all.has(`${id}.constructor`) ? `${id}.constructor` : id, node, 'call')
      return
    }
    this.#callee(callee, ts.isNewExpression(node) ? 'new' : 'call', unit)
  }

  /** The name by which something is called: `f`, `a.f`, `a?.f`; null for others. */
  #nameOf(callee: ts.Node): ts.Node | null {
    const { ts } = this.#program
    if (ts.isParenthesizedExpression(callee) || ts.isNonNullExpression(callee) || ts.isAsExpression(callee)) return this.#nameOf(callee.expression)
    if (ts.isPropertyAccessExpression(callee)) return callee.name
    return ts.isIdentifier(callee) ? callee : null
  }

  #callee(callee: ts.Node, kind: 'call' | 'new', unit: string): void {
    const { ts, checker, declarations } = this.#program
    const name = this.#nameOf(callee)
    const symbol = name === null ? undefined : checker.getSymbolAtLocation(name)
    // A function that is called where it is written is part of what calls it.
    if (name === null && (ts.isFunctionExpression(callee) || ts.isArrowFunction(callee) || ts.isParenthesizedExpression(callee))) return
    if (symbol === undefined) {
      this.unresolved++
      this.#dynamic(callee, unit)
      return
    }
    const id = idOf(this.#program, symbol)
    const constructor = kind === 'new' && id !== null && declarations.all.has(`${id}.constructor`) ? `${id}.constructor` : id
    if (constructor !== null && FUNCTIONS.has(declarations.all.get(id ?? '')?.kind ?? '')) this.#add(unit, constructor, callee, kind)
    else {
      const value = behind(this.#program, symbol).declarations?.find((node) => this.#isValue(node))
      if (value !== undefined) this.#dynamic(callee, unit, value.type)
    }
  }

  /** Whether a declaration of the project holds a function of which only the type is known: a parameter, a field, a variable without a function. */
  #isValue(node: ts.Node): node is ts.ParameterDeclaration | ts.PropertyDeclaration | ts.PropertySignature | ts.VariableDeclaration {
    const { ts, program } = { ts: this.#program.ts, program: this.#program }
    if (node.getSourceFile().isDeclarationFile || !program.declarations.modules.has(node.getSourceFile())) return false
    if (ts.isParameter(node) || ts.isPropertyDeclaration(node) || ts.isPropertySignature(node)) return true
    return (
      ts.isVariableDeclaration(node) &&
      !(node.initializer !== undefined && (ts.isArrowFunction(node.initializer) || ts.isFunctionExpression(node.initializer)))
    )
  }

  /** A call of a value of which only the type is known: as it is written where the value is declared, or as the compiler infers it. */
  #dynamic(callee: ts.Node, unit: string, written?: ts.TypeNode): void {
    const { ts, checker } = this.#program
    const text = callee.getText(this.#file).replaceAll(/\s+/g, ' ')
    const flags = ts.TypeFormatFlags.UseAliasDefinedOutsideCurrentScope
    const type =
      written === undefined
        ? checker.typeToString(checker.getTypeAtLocation(callee), callee, flags).replaceAll(/import\("[^"]*"\)\./g, '')
        : written.getText().replaceAll(/\s+/g, ' ')
    const cut = (of: string): string => (of.length > 80 ? `${of.slice(0, 79)}…` : of)
    this.#add(unit, `${cut(text)}: ${cut(type)}`, callee, 'dynamic')
  }

  /** A name that is no call: a function that is handed over, or an accessor that is read or written. */
  #name(node: ts.Identifier | ts.PrivateIdentifier, unit: string): void {
    const { ts, checker, declarations } = this.#program
    const { parent } = node
    const isMember = ts.isPropertyAccessExpression(parent) && parent.name === node
    const whole = isMember ? parent : node
    const isGet = isMember && this.#names.accessors.has(node.text)
    if (!isGet && !this.#names.functions.has(node.text) && !this.#renamed.has(node.text)) return
    const { parent: use } = whole
    // Names of parameters and variables are those of functions only where JavaScript requires them.
    if ((ts.isParameter(use) || ts.isVariableDeclaration(use) || ts.isBindingElement(use)) && use.name === node && !this.#isJavaScript) return
    if ((ts.isCallExpression(use) || ts.isNewExpression(use)) && use.expression === whole) return
    if (
      ts.isTypeNode(use) ||
      ts.isImportSpecifier(use) ||
      ts.isExportSpecifier(use) ||
      ts.isImportClause(use) ||
      ts.isQualifiedName(use) ||
      ts.isExpressionWithTypeArguments(use)
    )
      return
    if (declarations.idOf(use) !== undefined && 'name' in use && use.name === node) return
    if (ts.isPropertyAssignment(use) && use.name === node) return
    if (!isMember && ts.isPropertyAccessExpression(use)) return
    const id = idOf(
      this.#program,
      ts.isShorthandPropertyAssignment(use) ? checker.getShorthandAssignmentValueSymbol(use) : checker.getSymbolAtLocation(node),
    )
    const kind = id === null ? undefined : declarations.all.get(id)?.kind
    if (id === null || id === unit || kind === undefined || declarations.idOf(whole) === id) return
    if (kind === 'accessor') this.#add(unit, id, node, 'get')
    else if (FUNCTIONS.has(kind) && kind !== 'class') this.#add(unit, id, node, 'value')
  }

  /** The errors of `throw e`: of both sides of a condition, too. */
  #thrown(expression: ts.Expression, unit: string): void {
    const { ts, checker } = this.#program
    if (ts.isParenthesizedExpression(expression) || ts.isAsExpression(expression)) return this.#thrown(expression.expression, unit)
    if (ts.isConditionalExpression(expression)) {
      this.#thrown(expression.whenTrue, unit)
      this.#thrown(expression.whenFalse, unit)
      return
    }
    if (ts.isBinaryExpression(expression) && expression.operatorToken.kind === ts.SyntaxKind.QuestionQuestionToken) {
      this.#thrown(expression.left, unit)
      this.#thrown(expression.right, unit)
      return
    }
    const symbol: ts.Symbol | undefined = this.#madeClass(expression) ?? checker.getTypeAtLocation(expression).symbol
    const isClass = symbol !== undefined && symbol.name !== '__type' && (symbol.flags & (ts.SymbolFlags.Class | ts.SymbolFlags.Interface)) !== 0
    const id = isClass ? idOf(this.#program, symbol) : null
    const entry: Throw = {
      error: isClass ? symbol.name : null,
      symbol: id,
      code: symbol === undefined ? null : this.#codeOf(symbol),
      message: ts.isNewExpression(expression) || ts.isCallExpression(expression) ? this.#messageOf(expression.arguments ?? []) : null,
      line: lineOf(this.#file, expression.getStart(this.#file)),
    }
    const known = this.throws.get(unit)
    if (known === undefined) this.throws.set(unit, [entry])
    else known.push(entry)
  }

  /** The class of `new C(...)`, for which no argument has to be checked. */
  #madeClass(expression: ts.Expression): ts.Symbol | undefined {
    const { ts, checker } = this.#program
    if (!ts.isNewExpression(expression) || !ts.isIdentifier(expression.expression)) return undefined
    const symbol = checker.getSymbolAtLocation(expression.expression)
    const real = symbol === undefined ? undefined : behind(this.#program, symbol)
    return real !== undefined && (real.flags & ts.SymbolFlags.Class) !== 0 ? real : undefined
  }

  /** The first argument that is a sentence. */
  #messageOf(values: readonly ts.Expression[]): string | null {
    const texts = values.map((value) => this.#textOf(value)).filter((text) => text !== null)
    return texts.find((text) => /\s/.test(text)) ?? texts[0] ?? null
  }

  /** A text with its gaps as `{name}`; null for what is computed. */
  #textOf(value: ts.Expression): string | null {
    const { ts } = this.#program
    if (ts.isStringLiteralLike(value)) return value.text
    if (ts.isTemplateExpression(value))
      return (
        value.head.text +
        value.templateSpans.map(({ expression, literal }) => `{${expression.getText(this.#file).replaceAll(/\s+/g, ' ')}}${literal.text}`).join('')
      )
    if (!ts.isBinaryExpression(value) || value.operatorToken.kind !== ts.SyntaxKind.PlusToken) return null
    const [left, right] = [this.#textOf(value.left), this.#textOf(value.right)]
    if (left === null && right === null) return null
    return `${left ?? `{${value.left.getText(this.#file)}}`}${right ?? `{${value.right.getText(this.#file)}}`}`
  }

  /** The code of an error class: what its constructor passes to `super` first, if that is a name in capitals. */
  #codeOf(symbol: ts.Symbol): string | null {
    const { ts } = this.#program
    for (const node of symbol.declarations ?? []) {
      if (!ts.isClassLike(node)) continue
      const [, code] = /super\(\s*['"]([A-Z][A-Z\d]*_[A-Z\d_]+)['"]/.exec(node.getText()) ?? []
      if (code !== undefined) return code
    }
    return null
  }
}
