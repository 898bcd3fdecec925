export function deadLinks(
  pages: readonly object[],
  byHand: ReadonlyMap<string, string>,
  files: ReadonlyMap<string, unknown>,
): { readonly count: number; readonly dead: readonly string[] }
