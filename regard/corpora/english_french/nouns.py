"""The nouns of the bilingual grammar, by kind, as ``english french gender``.

An irregular plural follows a slash. The most ordinary words of a kind come first: small corpora
use the beginning of each list.
"""

NOUNS = {
    "person": """
        man/men homme m, woman/women femme f, boy garçon m, girl fille f, child/children enfant m,
        teacher professeur m, mother mère f, father père m, neighbour voisin m, nurse infirmière f,
        doctor médecin m, sister sœur f, brother frère m, queen reine f, king roi m, friend ami m,
        baker boulanger m, princess princesse f, prince prince m, aunt tante f, uncle oncle m,
        farmer fermier m, actress actrice f, actor acteur m, student étudiant m, witch sorcière f,
        lawyer avocat m, waitress serveuse f, waiter serveur m, hero/heroes héros m, lady dame f,
        soldier soldat m, singer chanteur m, engineer ingénieur m, dancer danseuse f,
        grandmother grand-mère/grands-mères f, grandfather grand-père/grands-pères m,
        writer écrivain m, painter peintre m, judge juge m, mayor maire m, tourist touriste m,
        saleswoman/saleswomen vendeuse f, hunter chasseur m, gardener jardinier m, worker ouvrier m,
        musician musicien m, dentist dentiste m, journalist journaliste m, sailor marin m,
        captain capitaine m, cousin cousin m, pupil élève m, butcher boucher m, widow veuve f,
        thief/thieves voleur m, customer client m, guest invité m, policeman/policemen policier m,
        schoolgirl écolière f, hostess hôtesse f, baby bébé m""",
    "animal": """
        cat chat m, dog chien m, horse cheval m, cow vache f, bird oiseau m, mouse/mice souris f,
        goat chèvre f, wolf/wolves loup m, hen poule f, rabbit lapin m, duck canard m,
        bee abeille f, lion lion m, elephant éléphant m, owl hibou/hiboux m, goose/geese oie f,
        bear ours m, fox renard m, monkey singe m, turtle tortue f, tiger tigre m,
        frog grenouille f, rat rat m, squirrel écureuil m, donkey âne m, ant fourmi f,
        pig cochon m, snake serpent m, butterfly papillon m, spider araignée f, crow corbeau m,
        hedgehog hérisson m, whale baleine f, dolphin dauphin m, camel chameau m,
        swan cygne m, rooster coq m""",
    "food": """
        apple pomme f, cake gâteau m, orange orange f, egg œuf m, tomato/tomatoes tomate f,
        pear poire f, lemon citron m, banana banane f, biscuit biscuit m, cherry cerise f,
        onion oignon m, carrot carotte f, strawberry fraise f, mushroom champignon m,
        sandwich sandwich m, omelette omelette f, peach pêche f, melon melon m, bean haricot m,
        pancake crêpe f, apricot abricot m, cabbage chou/choux m, salad salade f, nut noix f,
        cucumber concombre m, sausage saucisse f, pie tarte f""",
    "dish": """
        bread pain m, soup soupe f, cheese fromage m, meat viande f, butter beurre m, rice riz m,
        jam confiture f, honey miel m, sugar sucre m, chocolate chocolat m, fish poisson m,
        ham jambon m""",
    "drink": """
        water eau f, milk lait m, tea thé m, coffee café m, wine vin m, beer bière f, juice jus m,
        lemonade limonade f, cider cidre m""",
    "text": """
        book livre m, letter lettre f, newspaper journal m, story histoire f, poem poème m,
        novel roman m, message message m, sentence phrase f, article article m, poster affiche f,
        list liste f, recipe recette f""",
    "garment": """
        hat chapeau m, shirt chemise f, coat manteau m, dress robe f, shoe chaussure f,
        scarf/scarves écharpe f, glove gant m, jacket veste f, sock chaussette f, skirt jupe f,
        uniform uniforme m, belt ceinture f, suit costume m, jumper pull m""",
    "jewel": """
        ring bague f, watch montre f, necklace collier m, crown couronne f, bracelet bracelet m""",
    "object": """
        key clé f, box boîte f, knife/knives couteau m, bag sac m, table table f, lamp lampe f,
        gift cadeau m, ball ballon m, plate assiette f, glass verre m, chair chaise f,
        umbrella parapluie m, mirror miroir m, bottle bouteille f, cup tasse f, basket panier m,
        fork fourchette f, spoon cuillère f, suitcase valise f, clock horloge f, toy jouet m,
        doll poupée f, computer ordinateur m, phone téléphone m, tool outil m, rope corde f,
        candle bougie f, pillow oreiller m, blanket couverture f, curtain rideau m, pen stylo m,
        pencil crayon m, notebook cahier m, ticket billet m, flag drapeau m, stone pierre f,
        photo photo f, painting tableau m, map carte f, machine machine f, flower fleur f,
        carpet tapis m, bed lit m, sofa canapé m, hammer marteau m, wheel roue f, coin pièce f,
        cupboard armoire f, drawer tiroir m, parcel colis m""",
    "vehicle": """
        car voiture f, boat bateau m, train train m, bicycle vélo m, plane avion m, bus bus m,
        lorry camion m, ship navire m, motorbike moto f, ambulance ambulance f, cart charrette f,
        taxi taxi m""",
    "opening": """
        door porte f, window fenêtre f, gate portail/portails m, shutter volet m""",
    "building": """
        house maison f, school école f, church église f, museum musée m, castle château m,
        hotel hôtel m, shop magasin m, station gare f, hospital hôpital m, theatre théâtre m,
        restaurant restaurant m, library bibliothèque f, bakery boulangerie f, factory usine f,
        bank banque f, farm ferme f, cinema cinéma m, tower tour f, cottage chaumière f,
        prison prison f""",
    "place": """
        garden jardin m, forest forêt f, street rue f, park parc m, field champ m,
        village village m, city ville f, kitchen cuisine f, room chambre f, island île f,
        valley vallée f, desert désert m, cave grotte f, courtyard cour f, cellar cave f,
        attic grenier m, corridor couloir m, office bureau m""",
    "crossing": """
        bridge pont m, river rivière f, lake lac m, mountain montagne f, avenue avenue f,
        stream ruisseau m, sea mer f""",
    "instrument": """
        piano piano m, guitar guitare f, violin violon m, flute flûte f, harp harpe f,
        drum tambour m, trumpet trompette f, accordion accordéon m, cello violoncelle m""",
}
"""English and French nouns, listed by what they name."""

NAMES = """
    Marie f, Paul m, Anne f, Pierre m, Julie f, Louis m, Claire f, Arthur m, Emma f, Lucas m,
    Alice f, Thomas m, Sophie f, Nicolas m, Isabelle f, Antoine m, Jeanne f, Martin m, Charlotte f,
    Simon m, Elise f, Vincent m, Nathalie f, Bernard m, Lucie f, Victor m, Sarah f, Olivier m,
    Juliette f, Gabriel m"""
"""First names, the same in both languages."""

ASPIRATED = frozenset({"hibou", "hiboux", "héros", "hérisson", "hérissons", "haricot", "haricots",
                       "harpe", "harpes", "huit", "haut", "haute"})  # fmt: skip
"""Words whose *h* forbids elision: *le hibou*, not *l' hibou*."""
