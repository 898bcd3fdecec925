// Plugins that rewrite the files of a bundle, after types were removed.
import { checkOptions } from '../protocol/index.ts'
import { rewriteSource } from './rewriteSource.ts'

/** Options of {@link rewriterPlugin}. */
export interface RewriterPluginOptions {
  /** Which files to rewrite, by their paths. Default: all JavaScript and TypeScript files outside of node_modules. */
  readonly include?: (path: string) => boolean
}

/** A plugin of Rollup and Vite. */
export interface RewriterPlugin {
  readonly name: string
  transform(code: string, id: string): { code: string; map: string } | null
}

const isSource = (path: string): boolean => /\.[cm]?[jt]sx?(?:\?.*)?$/.test(path) && !/[\\/]node_modules[\\/]/.test(path)

/**
 * A plugin of Rollup and Vite that rewrites modules as `rewriteSource` does, so that tracers see conditions. Put it behind those that remove types.
 *
 *     export default { plugins: [rewriterPlugin()] } // vite.config.js
 */
export function rewriterPlugin(options: RewriterPluginOptions = {}): RewriterPlugin {
  checkOptions('rewriterPlugin', options, { include: true })
  const { include = isSource } = options
  return {
    name: 'tensorfx-rewriter',
    transform(code, id) {
      const rewritten = include(id) ? rewriteSource(code, { file: id }) : null
      return rewritten === null ? null : { code: rewritten.code, map: rewritten.map.toString() }
    },
  }
}
