// An oxlint plugin with the rules of this repository's own house. `house/layers`: imports follow the list of layers, type imports included. `house/callables`: modules
// are not taken for functions.
import { dirname, join, relative, sep } from 'node:path'
import { layers, mayImport, placeOf } from './layers.mjs'

/** A path inside src with slashes, or null. */
function inSrc(cwd, path) {
  const name = relative(join(cwd, 'src'), path)
  return name.startsWith('..') ? null : name.split(sep).join('/')
}

const layersRule = {
  meta: { type: 'problem', docs: { description: 'Imports follow the list of layers in scripts/house/layers.mjs' }, schema: [] },
  create(context) {
    const path = inSrc(context.cwd, context.filename)
    if (path === null) return {}
    const from = placeOf(path)
    const check = (node, source) => {
      if (typeof source !== 'string' || !source.startsWith('.')) return
      const target = inSrc(context.cwd, join(dirname(context.filename), source))
      const to = target === null ? undefined : placeOf(target)
      if (from === undefined) context.report({ node, message: `src/${path} has no row in scripts/house/layers.mjs: add its folder to the list.` })
      else if (to === undefined) context.report({ node, message: `'${source}' is in no place of scripts/house/layers.mjs.` })
      else if (!mayImport(from, to)) {
        const { imports } = layers.find((layer) => layer.place === from)
        const allowed = imports.length === 0 ? 'nothing' : imports.includes('*') ? 'what stands below it' : imports.join(', ')
        context.report({ node, message: `'${from}' may not import '${to}'. It may import ${allowed} (scripts/house/layers.mjs).` })
      }
    }
    return {
      ImportDeclaration: (node) => check(node, node.source.value),
      ExportNamedDeclaration: (node) => check(node, node.source?.value),
      ExportAllDeclaration: (node) => check(node, node.source.value),
      ImportExpression: (node) => check(node, node.source.value),
      TSImportType: (node) => check(node, node.source?.value ?? node.argument?.literal?.value),
    }
  },
}

const isText = (node, text) => node.type === 'Literal' && node.value === text

/** `protocol` has the question, and no module gets into `kernels`. */
const callablesRule = {
  meta: {
    type: 'problem',
    docs: { description: "Modules are functions, too: ask isFunction or isCallable, not typeof x === 'function'" },
    schema: [],
  },
  create(context) {
    const path = inSrc(context.cwd, context.filename)
    if (path === null || path.startsWith('protocol/') || path.startsWith('kernels/')) return {}
    return {
      BinaryExpression: (node) => {
        const isTypeof = (side) => side.type === 'UnaryExpression' && side.operator === 'typeof'
        if ((isTypeof(node.left) && isText(node.right, 'function')) || (isTypeof(node.right) && isText(node.left, 'function')))
          context.report({ node, message: "A module's typeof is 'function', too: use isFunction, isCallable or isModule of src/protocol/kinds.ts." })
      },
    }
  },
}

export default { meta: { name: 'house' }, rules: { callables: callablesRule, layers: layersRule } }
