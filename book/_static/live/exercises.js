export function exercises() {}
