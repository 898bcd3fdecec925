export function programOf(source: string): string
