// Rewrites of graphs: a list of named patterns with conditions. A pattern is a traced function with a replacement, or a test of one node and what becomes of it.
import { GraphError } from '../../graph/errors.ts'
import { Node } from '../../graph/node.ts'
import { defineRewrite } from '../../../pipeline/index.ts'
import type { Pass, Rewrite, RewriteDefinition } from '../../../pipeline/index.ts'
import { checkGraphModule } from '../../../protocol/graphChecks.ts'
import { checkArgument, checkArray, checkCallable, checkCount, checkOptions, checkString, isObject } from '../../../protocol/index.ts'
import { replacePatternWithFilters } from '../../rewrite/replacePattern.ts'
import type { MatchFilter, Pattern } from '../../rewrite/replacePattern.ts'
import type { GraphModule } from '../../run/graphModule.ts'

/** A rewrite of graphs, as {@link patternRewrite} and {@link nodeRewrite} make it. */
export interface GraphRewrite {
  readonly name: string
  /** What becomes what, in a sentence. */
  readonly what: string
  /** Rewrites a graph wherever it can, and returns the names of the nodes that it replaced. The graph is complete afterwards, but has not been compiled. */
  readonly apply: (gm: GraphModule) => readonly string[]
}

/** The definition of a {@link patternRewrite}. */
export interface PatternRewrite {
  /** The name in the list that {@link applyRewrites} returns. */
  readonly name: string
  /** What becomes what, in a sentence. Default: the name. */
  readonly what?: string
  /** A function or module, which is traced, or a graph; its parameters stand for any value. */
  readonly pattern: Pattern
  /** What takes the place of the pattern, with as many parameters. */
  readonly replacement: Pattern
  /** Whether to replace an occurrence. Default: always. */
  readonly condition?: MatchFilter
  /** A literal in the pattern matches any literal. Default false. */
  readonly ignoreLiterals?: boolean
}

/**
 * A rewrite of the occurrences of a pattern, under a condition.
 *
 *     const silu = patternRewrite({
 *       name: 'silu',
 *       pattern: (x: Tensor) => x.mul(x.sigmoid()),
 *       replacement: (x: Tensor) => F.silu(x),
 *       condition: (match) => match.returningNodes[0]?.users.size === 1,
 *     })
 *     applyRewrites(gm, [silu]) // [{ name: 'silu', nodes: ['mul'] }]
 */
export function patternRewrite(definition: PatternRewrite): GraphRewrite {
  checkCount('patternRewrite', arguments, 1)
  checkOptions('patternRewrite', definition, {
    name: true,
    what: true,
    pattern: true,
    replacement: true,
    condition: true,
    ignoreLiterals: 'boolean',
  })
  const { name, what = name, pattern, replacement, condition, ignoreLiterals = false } = definition
  checkString('patternRewrite', 'name', name)
  if (condition !== undefined) checkCallable('patternRewrite', 'condition', condition)
  const matchFilters = condition === undefined ? [] : [condition]
  return {
    name,
    what,
    apply: (gm) =>
      replacePatternWithFilters(gm, pattern, replacement, { matchFilters, ignoreLiterals }).flatMap(({ anchor, nodesMap }) => {
        const replaced = nodesMap.get(anchor)
        return replaced instanceof Node ? [replaced.name] : []
      }),
  }
}

/** A node of a graph, where a rewrite may apply. */
export interface NodePlace {
  readonly gm: GraphModule
  readonly node: Node
}

/**
 * A rewrite of single nodes: `match` says what it found at a node, or null; `condition` whether that may be replaced; `replace` returns the node whose value takes the place of the
 * node's, which may be another one of the graph or a new one. The node is erased afterwards. The rewrite throws GraphError if `replace` returns no node.
 *
 *     const withoutNeg = nodeRewrite({
 *       name: 'double negation',
 *       what: '-(-x) becomes x',
 *       match: ({ node }) => (isNeg(node) && isNeg(node.args[0]) ? node.args[0] : null),
 *       replace: (inner) => inner.args[0],
 *     })
 */
export function nodeRewrite<M>(definition: RewriteDefinition<NodePlace, M, Node>): GraphRewrite {
  checkCount('nodeRewrite', arguments, 1)
  checkOptions('nodeRewrite', definition, { name: true, what: true, match: true, condition: true, replace: true })
  checkString('nodeRewrite', 'name', definition.name)
  const { name, what, at }: Rewrite<NodePlace, Node> = defineRewrite(definition)
  const apply = (gm: GraphModule): readonly string[] => {
    const done: string[] = []
    for (const node of [...gm.graph.nodes]) {
      const replace = node.erased ? null : at({ gm, node })
      if (replace === null) continue
      const value = replace()
      if (!(value instanceof Node)) throw new GraphError(`rewrite '${name}': replace must return a node, for node '${node.name}'.`)
      done.push(node.name)
      node.replaceAllUsesWith(value)
      gm.graph.eraseNode(node)
    }
    return done
  }
  return { name, what, apply }
}

/** What a rewrite did to a graph: the names of the nodes that it replaced. */
export interface AppliedRewrite {
  readonly name: string
  readonly nodes: readonly string[]
}

/**
 * Applies rewrites to a graph in order, each wherever it can, and removes the submodules that nothing calls any more. Changes `gm`; lints and recompiles it. Returns those that replaced
 * something, by name.
 *
 *     console.table(applyRewrites(gm, [batchNormRewrite, dropoutRewrite, silu]))
 *
 * @throws ArgumentError for anything but rewrites.
 */
export function applyRewrites(gm: GraphModule, rewrites: readonly GraphRewrite[]): readonly AppliedRewrite[] {
  checkCount('applyRewrites', arguments, 2)
  checkGraphModule('applyRewrites', gm)
  checkArray('applyRewrites', 'rewrites', rewrites)
  for (const [i, rewrite] of rewrites.entries())
    checkArgument(
      isObject(rewrite) && 'apply' in rewrite,
      'applyRewrites',
      `rewrites[${i}]`,
      'a rewrite, as patternRewrite and nodeRewrite make it',
      rewrite,
    )
  const applied = rewrites.map(({ name, apply }) => ({ name, nodes: apply(gm) })).filter(({ nodes }) => nodes.length > 0)
  gm.deleteAllUnusedSubmodules()
  gm.graph.lint()
  gm.recompile()
  return applied
}

/** Rewrites as a pass, which changed the graph if one of them replaced something. */
export function rewritePass(name: string, rewrites: readonly GraphRewrite[]): Pass<GraphModule> {
  checkCount('rewritePass', arguments, 2)
  checkString('rewritePass', 'name', name)
  return { name, run: (gm) => applyRewrites(gm, rewrites).length > 0 }
}
