import type { PageLinks } from '../../src/docs/pages/page.ts'

export function deadLinks(
  links: readonly PageLinks[],
  byHand: ReadonlyMap<string, string>,
  files: ReadonlyMap<string, unknown>,
  made?: ReadonlyMap<string, readonly string[]>,
): { readonly count: number; readonly dead: readonly string[] }
