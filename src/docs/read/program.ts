// A program that the compiler has read, and how its symbols lead to the ids of the model.
import { relative, sep } from 'node:path'
import type * as ts from 'typescript6'
import type { Compiler } from '../compiler.ts'
import type { Project } from '../project.ts'
import type { Declarations } from './declarations.ts'

/** What all readers work on. */
export interface Program {
  readonly ts: Compiler
  readonly checker: ts.TypeChecker
  readonly project: Project
  readonly declarations: Declarations
  /** The syntax tree of a file of the project. */
  readonly fileOf: (path: string) => ts.SourceFile | undefined
}

/** The path of a file from the root of the project, with `/`. */
export const pathIn = (root: string, file: string): string => relative(root, file).split(sep).join('/')

/** The line of a position, from 1. */
export const lineOf = (file: ts.SourceFile, position: number): number => file.getLineAndCharacterOfPosition(position).line + 1

/** What a symbol stands for, behind the names under which it was imported and exported. */
export function behind({ ts, checker }: Pick<Program, 'ts' | 'checker'>, symbol: ts.Symbol): ts.Symbol {
  return symbol.flags & ts.SymbolFlags.Alias ? checker.getAliasedSymbol(symbol) : symbol
}

/** The id of a symbol; null if it is not one of the model. */
export function idOf(program: Program, symbol: ts.Symbol | undefined, depth = 0): string | null {
  if (symbol === undefined || depth > 8) return null
  const { ts, checker, declarations } = program
  const real = behind(program, symbol)
  for (const node of real.declarations ?? []) {
    const id = declarations.idOf(node)
    if (id !== undefined) return id
  }
  for (const node of real.declarations ?? []) {
    // `module.exports = { f, g: h }`, `export default f`, `const g = f`: the names lead on to a declaration.
    const target = ts.isShorthandPropertyAssignment(node)
      ? checker.getShorthandAssignmentValueSymbol(node)
      : ts.isPropertyAssignment(node) && ts.isIdentifier(node.initializer)
        ? checker.getSymbolAtLocation(node.initializer)
        : ts.isExportAssignment(node)
          ? checker.getSymbolAtLocation(node.expression)
          : ts.isBinaryExpression(node)
            ? checker.getSymbolAtLocation(node.right)
            : ts.isPropertyAccessExpression(node) && ts.isBinaryExpression(node.parent)
              ? checker.getSymbolAtLocation(node.parent.right)
              : undefined
    const id = target === real ? null : idOf(program, target, depth + 1)
    if (id !== null) return id
  }
  return null
}
