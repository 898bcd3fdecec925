export function deadLinks(
  pages: readonly object[],
  byHand: ReadonlyMap<string, string>,
  files: ReadonlyMap<string, unknown>,
  made?: ReadonlyMap<string, readonly string[]>,
): { readonly count: number; readonly dead: readonly string[] }
