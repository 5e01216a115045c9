import { useEffect, useState } from 'react';
import { useLanguage } from '../text/words';
import { Icon } from './icon';

const THEMES = ['auto', 'light', 'dark'] as const;
type Theme = (typeof THEMES)[number];
const PLACE = 'folkmoot-theme';

/** Light, dark, or as the system has it. */
export function ThemeButton() {
  const { words } = useLanguage();
  const [theme, setTheme] = useState<Theme>(() => THEMES.find((it) => it === localStorage.getItem(PLACE)) ?? 'auto');
  useEffect(() => {
    document.documentElement.dataset.theme = theme;
    localStorage.setItem(PLACE, theme);
  }, [theme]);
  const next = THEMES[(THEMES.indexOf(theme) + 1) % THEMES.length] ?? 'auto';
  return (
    <button type="button" className="quiet square" aria-label={words.shell.theme[theme]} title={words.shell.theme[theme]} onClick={() => setTheme(next)}>
      <Icon shape="theme" />
    </button>
  );
}
