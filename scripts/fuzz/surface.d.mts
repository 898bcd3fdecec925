export function loadSurface(
  load: (entry: string) => Promise<unknown>,
): Promise<{ readonly library: { readonly entries: object; readonly samples: object }; readonly reset: () => void }>
