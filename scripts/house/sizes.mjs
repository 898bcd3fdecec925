// npm run check:sizes: sizes that are compared by hand in the rooms whose code symbolic traces run. A size may be a symbol there, which is an object. TypeScript refuses arithmetic on it but lets comparisons pass, which see
// the object: `s === 3` is false for each symbol. `sizeEq`, `sizeLess` and the like (src/tensor/size.ts) ask the trace.
import { join } from 'node:path'
import { fileURLToPath, pathToFileURL } from 'node:url'
import ts from 'typescript6'

const root = fileURLToPath(new URL('../..', import.meta.url))
const rooms = ['ops', 'aot', 'inductor'].map((room) => join(root, 'src', room, '/'))

const { SyntaxKind, TypeFlags } = ts
const comparisons = new Set([
  SyntaxKind.LessThanToken,
  SyntaxKind.LessThanEqualsToken,
  SyntaxKind.GreaterThanToken,
  SyntaxKind.GreaterThanEqualsToken,
  SyntaxKind.EqualsEqualsEqualsToken,
  SyntaxKind.ExclamationEqualsEqualsToken,
])

const members = (type) => (type.isUnion() ? type.types : [type])
const has = (type, name) => members(type).some(({ symbol }) => symbol?.name === name)
/** Whether a value is a size that may be a symbol. An argument of any operator, which may be a tensor as well, is none: it is compared with itself. */
const maybeSymbol = (type) => has(type, 'SymbolicSize') && !has(type, 'Tensor')
/** Whether a value may be a size at all: a number or a symbol. A negative literal stands for "not given". */
const maybeSize = (type) => members(type).some((one) => ((one.flags & TypeFlags.NumberLike) !== 0 && !(one.value < 0)) || maybeSymbol(one))

/** Comparisons of sizes by hand, as `src/ops/x.ts:12 a === b`. `overlay`: texts of files by path in the repository, in the place of what is there. */
export function comparisonsOfSizes(overlay = {}) {
  const texts = new Map(Object.entries(overlay).map(([path, text]) => [join(root, path), text]))
  const host = { ...ts.sys, onUnRecoverableConfigFileDiagnostic: ({ messageText }) => Promise.reject(new Error(String(messageText))) }
  const { fileNames, options } = ts.getParsedCommandLineOfConfigFile(join(root, 'tsconfig.build.json'), { noEmit: true }, host)
  const files = ts.createCompilerHost(options)
  const { readFile, fileExists } = files
  files.readFile = (path) => texts.get(path) ?? readFile(path)
  files.fileExists = (path) => texts.has(path) || fileExists(path)
  const program = ts.createProgram([...new Set([...fileNames, ...texts.keys()])], options, files)
  const checker = program.getTypeChecker()
  const found = []
  for (const source of program.getSourceFiles()) {
    if (!rooms.some((room) => source.fileName.startsWith(room))) continue
    const visit = (node) => {
      if (ts.isBinaryExpression(node) && comparisons.has(node.operatorToken.kind)) {
        const [left, right] = [node.left, node.right].map((side) => checker.getTypeAtLocation(side))
        if ((maybeSymbol(left) && maybeSize(right)) || (maybeSymbol(right) && maybeSize(left))) {
          const { line } = source.getLineAndCharacterOfPosition(node.getStart())
          found.push(`${source.fileName.slice(root.length)}:${line + 1} ${node.getText()}`)
        }
      }
      ts.forEachChild(node, visit)
    }
    visit(source)
  }
  return found
}

if (import.meta.url === pathToFileURL(process.argv[1] ?? '').href) {
  const found = comparisonsOfSizes()
  console.log([...found, `${found.length} sizes are compared by hand in src/ops, src/aot and src/inductor`].join('\n'))
  if (found.length > 0) {
    console.log('A size may be a symbol: use sizeEq, sizeLess, … of src/tensor/size.ts, which ask the trace.')
    process.exitCode = 1
  }
}
